"""The clients of the clouds, and what their errors become. No cloud is reached."""

import pytest
from pyarrow import fs

from gpureport.errors import PlaceError
from gpureport.places.bucket_access import open_client
from gpureport.places.bucket_errors import describe_bucket_error


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the clients that were opened, and the account of Azure."""
    open_client.cache_clear()
    for name in ("ACCOUNT", "KEY", "SAS_TOKEN"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


def test_google() -> None:
    """Google's client takes its credentials from where it always does."""
    assert isinstance(open_client("gs", large=False), fs.GcsFileSystem)


def test_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's client needs the name of the account."""
    with pytest.raises(PlaceError, match="set AZURE_STORAGE_ACCOUNT"):
        open_client("az", large=False)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    assert isinstance(open_client("az", large=False), fs.AzureFileSystem)


_HEAD = "When getting information for key 'x' in bucket 'b': AWS Error "


@pytest.mark.parametrize(
    ("scheme", "text", "said"),
    [
        ("s3", "AWS Error NO_SUCH_BUCKET during PutObject operation: none", "there is no such bucket; create it"),
        ("s3", f"{_HEAD}ACCESS_DENIED during HeadObject operation: No", "access is denied; check AWS_ACCESS_KEY_ID"),
        ("s3", f"{_HEAD}INVALID_ACCESS_KEY_ID during ListObjectsV2", "the credentials are missing or not valid; check"),
        (
            "s3",
            f"{_HEAD}NETWORK_CONNECTION: curlCode: 7, Could not connect; Details: F",
            "the connection failed (Could n",
        ),
        (
            "s3",
            f"{_HEAD}NETWORK_CONNECTION: curlCode: 28, Timeout was reached; Details: O",
            "it does not answer (Timeout",
        ),
        (
            "s3",
            "AWS Error UNKNOWN (HTTP status 301) during HeadObject",
            "the bucket is in another region; set AWS_REGION",
        ),
        (
            "gs",
            "Status(UNAVAILABLE: Could not create a OAuth2 access token to au",
            "the credentials are missing or not",
        ),
        (
            "az",
            "Fail to get a new connection for: https://a.net.\nCould not resolve host",
            "the connection failed; check",
        ),
        (
            "az",
            "Unknown error: N5Azure: Failed to get token from DefaultAzureCredential.\n",
            "the credentials are missing",
        ),
        ("s3", "AWS Error UNKNOWN (HTTP status 400) during PutObject:\nodd", "the request failed (AWS Error UNKNOWN"),
    ],
)
def test_errors(scheme: str, text: str, said: str) -> None:
    """What pyarrow 25 says of each case, shortened, becomes one line with what to do."""
    error = str(describe_bucket_error(f"{scheme}://b/x", scheme, OSError(text)))
    assert error.startswith(f"{scheme}://b/x: {said}")
    assert "\n" not in error

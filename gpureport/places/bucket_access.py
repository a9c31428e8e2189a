"""The clients of the clouds, by pyarrow: opened when a bucket is first reached, and never waited for without end.

Credentials, region and endpoint come from where the clients of each cloud find them: the environment, the files of
their command lines, or the machine itself.
"""

import os
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from gpureport.errors import PlaceError
from gpureport.places.bucket_errors import describe_bucket_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import fs

SMALL = 2**23
"""Bytes of the largest object that is written by one request; of one of 10 MB and more pyarrow makes parts."""
_CONNECT_SECONDS, _SILENT_SECONDS, _ATTEMPTS = 10, 15, 3
"""A server that does not answer is given up after 45 s; the defaults of the clients range from 10 s to 15 min."""


@contextmanager
def reach_bucket(url: str, scheme: str, *, large: bool = False) -> "Iterator[fs.FileSystem]":
    """Give the client for a URL.

    Args:
        url: what is reached.
        scheme: its scheme.
        large: whether it is to be written and larger than `SMALL`.

    Raises:
        FileNotFoundError: when there is no such object.
        PlaceError: when the bucket cannot be reached, or refuses.
    """
    import pyarrow as pa  # noqa: PLC0415 - only where a bucket is named

    try:
        yield open_client(scheme, large=large)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise describe_bucket_error(url, scheme, error) from error


@cache
def open_client(scheme: str, *, large: bool) -> "fs.FileSystem":
    """Return the client for a scheme; arguments as for `reach_bucket`.

    Raises:
        PlaceError: when the account of Azure is not named.
    """
    if scheme == "s3":
        return _open_s3(large=large)
    return _open_google() if scheme == "gs" else _open_azure()


def _open_s3(*, large: bool) -> "fs.FileSystem":
    from pyarrow import fs  # noqa: PLC0415 - only where a bucket is named

    # pyarrow does not read these, which every other client does
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_SILENT_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        # one request for a small object instead of three; where the first request for a large one fails, this would
        # write its first megabytes as if they were the whole
        allow_delayed_open=not large,  # type: ignore[call-arg]  # the stubs lack it
    )


def _open_google() -> "fs.FileSystem":
    from pyarrow import fs  # noqa: PLC0415 - only where a bucket is named

    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=_SILENT_SECONDS))


def _open_azure() -> "fs.FileSystem":
    from pyarrow import fs  # noqa: PLC0415 - only where a bucket is named

    account = os.environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        what = "the storage account is not named"
        raise PlaceError("az://", what, "set AZURE_STORAGE_ACCOUNT", code="no_storage_account")
    # without either, the login of the az command or the identity of the machine is used
    key, token = os.environ.get("AZURE_STORAGE_KEY"), os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    return fs.AzureFileSystem(account, account_key=key, sas_token=None if key else token)

"""What went wrong with a bucket, in a few words, and what to do about it.

The clients of the clouds report errors as long texts; words of them show the few cases that a person can act on.
"""

import re

from gpureport.errors import PlaceError, Problem
from gpureport.redaction import redact_start

_LOGIN = {
    "s3": "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and what they may do there",
    "gs": "check GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "az": "check AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or run az login",
}
_NETWORK = {
    "s3": "check the network and AWS_ENDPOINT_URL, and run it again",
    "gs": "check the network, and run it again",
    "az": "check the network and AZURE_STORAGE_ACCOUNT, and run it again",
}
NO_BUCKET: Problem = "there is no such bucket", "create it, or check its name"
"""What to say of a bucket that is not there, and what to do about it."""
_NO_LOGIN = (
    "INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|ExpiredToken"
    "|OAuth2 access token|Failed to get token|AuthenticationFailed|UNAUTHENTICATED"
)
_DENIED = "ACCESS_DENIED|AccessDenied|PERMISSION_DENIED|AuthorizationFailure|HTTP status 403"
_REDIRECT = "PERMANENT_REDIRECT|AuthorizationHeaderMalformed|HTTP status 301"
_LOST = "NETWORK_CONNECTION|curlCode|CURL error|resolve host|new connection|UNAVAILABLE"
_CASES: tuple[tuple[str, str, str, str | dict[str, str]], ...] = (
    ("no_such_bucket", "NO_SUCH_BUCKET|ContainerNotFound|bucket does not exist", *NO_BUCKET),
    ("not_logged_in", _NO_LOGIN, "the credentials are missing or not valid", _LOGIN),
    ("access_denied", _DENIED, "access is denied", _LOGIN),
    ("other_region", _REDIRECT, "the bucket is in another region", "set AWS_REGION to the region of the bucket"),
    ("no_answer", "Timeout was reached", "it does not answer", _NETWORK),
    ("no_connection", _LOST, "the connection failed", _NETWORK),
)
_REASON = re.compile(r"curlCode: \d+, ([^;]+)|CURL error \[\d+\]=([\w ]+?)(?= error_info|$)")
_LONGEST = 160


def describe_bucket_error(url: str, scheme: str, error: Exception) -> PlaceError:
    """Return an error of the client of the cloud with this scheme as one that a person can act on."""
    text = " ".join(str(error).split())
    for code, words, what, hints in _CASES:
        if re.search(words, text):
            reason = _REASON.search(text) if hints is _NETWORK else None
            detail = f" ({(reason[1] or reason[2]).strip()})" if reason else ""
            return PlaceError(url, what + detail, hints if isinstance(hints, str) else hints[scheme], code=code)
    what = f"the request failed ({redact_start(text, _LONGEST)})"
    return PlaceError(url, what, "run it again, or choose another place", code="request_failed")

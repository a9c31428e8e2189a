"""What a person types as a place: a path, or the URL of something in a bucket."""

import re
from pathlib import Path

from gpureport.errors import SettingsError
from gpureport.fetched_copies import SCHEMES
from gpureport.places.remote_path import RemotePath

Place = Path | RemotePath
"""A path of this machine, or of a bucket."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def is_bucket_url(text: str) -> bool:
    """Return whether a text is the URL of something in a bucket."""
    return text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def is_place(text: str) -> bool:
    """Return whether a text can be a place: a path, or the URL of something in a bucket."""
    url = _URL.fullmatch(text)
    return url is None or (url[1] in SCHEMES and bool(url[2].strip("/")))


def parse_place(text: str) -> Place:
    """Return the place that a text names: a path, unless it is a URL.

    Raises:
        SettingsError: when the URL has an unknown scheme, or names no bucket.
    """
    url = _URL.fullmatch(text)
    if url is None:
        return Path(text)
    scheme, path = url[1], url[2].strip("/")
    if scheme not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        hint = f"give a path, or a URL that begins with {known}"
        raise SettingsError(text, f"{scheme}:// is not supported", hint, code="unknown_scheme")
    if not path:
        raise SettingsError(text, "it names no bucket", f"write {scheme}://BUCKET/PATH", code="no_bucket_named")
    return RemotePath(scheme=scheme, path=path)

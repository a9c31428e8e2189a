"""Local copies of files in buckets, and the URLs that every text names them by.

What lies in a bucket is read from a copy in a temporary folder, which is removed when the process ends. The copy of
`s3://logs/a/gpu.csv` is `<folder>/s3/logs/a/gpu.csv`, so that a path becomes a URL by its beginning alone.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

SCHEMES = ("s3", "gs", "az")
"""Schemes of buckets: S3 and what speaks its language, Google Cloud Storage, Azure Blob Storage."""
_VARIABLE = "GPUREPORT_COPIES"
"""Environment variable with the folder: processes that read logs for this one name them alike."""


def copy_path(scheme: str, path: str) -> Path:
    """Return where the copy of `scheme://path` lies, whether or not it is there."""
    return _make_folder() / scheme / path


def name_by_url(text: str) -> str:
    """Return a text with the URL of each copy in place of its path."""
    folder = os.environ.get(_VARIABLE)
    for scheme in SCHEMES if folder else ():
        text = text.replace(f"{folder}/{scheme}/", f"{scheme}://")
    return text


@cache
def _make_folder() -> Path:
    folder = make_temporary_folder()
    os.environ[_VARIABLE] = str(folder)
    return folder


def make_temporary_folder() -> Path:
    """Return a new folder that goes when the process ends."""
    # resolved, since readers resolve paths before they name them
    folder = Path(tempfile.mkdtemp(prefix="gpureport-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

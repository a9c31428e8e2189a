"""Reads and writes runs, reports and logs at a local path, or in an object or folder in a bucket.

Buckets are accessed through pyarrow, with the part of pathlib's interface that is used here. Credentials, region and
endpoint are found where each cloud's own clients look for them. `written_paths` checks which paths a command may
write.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from mimetypes import guess_type
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from gpureport.errors import PlaceError, SettingsError
from gpureport.redaction import redact_start
from gpureport.regular_files import SCHEMES, code_system_error, copy_path

if TYPE_CHECKING:
    from pyarrow import fs

_SMALL = 2**23  # bytes per request; pyarrow uploads objects of 10 MB or more in parts
_CONNECT_SECONDS, _SILENT_SECONDS, _ATTEMPTS = 10, 15, 3  # 45 s in total; the defaults range from 10 s to 15 min
_AT_ONCE = 16  # number of concurrent requests; pyarrow keeps 25 connections open
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_LOGIN = {
    "s3": "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and their permissions",
    "gs": "check GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "az": "check AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or run az login",
}
_NETWORK = "check the network, and AWS_ENDPOINT_URL or AZURE_STORAGE_ACCOUNT if set, then try again"
_NO_BUCKET = ("there is no such bucket", "create it, or check its name")
_NO_LOGIN = "INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|ExpiredToken"
_NO_LOGIN += "|OAuth2 access token|Failed to get token|AuthenticationFailed|UNAUTHENTICATED"
_DENIED = "ACCESS_DENIED|AccessDenied|PERMISSION_DENIED|AuthorizationFailure|HTTP status 403"
_LOST = "NETWORK_CONNECTION|curlCode|CURL error|resolve host|new connection|UNAVAILABLE"
_MOVED = "PERMANENT_REDIRECT|AuthorizationHeaderMalformed|HTTP status 301"
_CASES = (
    ("no_such_bucket", "NO_SUCH_BUCKET|ContainerNotFound|bucket does not exist", *_NO_BUCKET),
    ("not_logged_in", _NO_LOGIN, "the credentials are missing or not valid", ""),
    ("access_denied", _DENIED, "access is denied", ""),
    ("other_region", _MOVED, "the bucket is in another region", "set AWS_REGION to the region of the bucket"),
    ("no_answer", "Timeout was reached", "it does not respond", _NETWORK),
    ("no_connection", _LOST, "the connection failed", _NETWORK),
)
"""Each error's code, a pattern in the clients' messages, what is wrong, and what to do (if empty, log in)."""
_LONGEST = 160  # maximum characters shown of an unknown error
Item = TypeVar("Item")
Result = TypeVar("Result")


def describe_bucket_error(url: str, scheme: str, error: Exception) -> PlaceError:
    text = " ".join(str(error).split())
    for code, words, what, hint in _CASES:
        if re.search(words, text):
            return PlaceError(url, what, hint or _LOGIN[scheme], code=code)
    return PlaceError(url, f"the request failed ({redact_start(text, _LONGEST)})", "try again", code="request_failed")


class RemotePath(PurePosixPath):
    """An object or folder in a bucket, with the methods of pathlib. A folder exists while it contains an object.

    Its parts are as in `s3:/bucket/key`. Methods raise `PlaceError` if the bucket is unreachable or denies access.
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    @property
    def scheme(self) -> str:
        return self.parts[0].removesuffix(":")

    @property
    def path(self) -> str:
        return "/".join(self.parts[1:])

    def exists(self) -> bool:
        return self.find_info().type.name != "NotFound"

    def is_file(self) -> bool:
        return self.find_info().is_file

    def is_dir(self) -> bool:
        return self.find_info().type.name == "Directory"

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing, since a folder exists once it contains an object."""

    def read_bytes(self) -> bytes:
        with self.reach() as client, client.open_input_file(self.path) as stream:
            return stream.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Write an object atomically, and derive its content type from its name.

        An interrupt would close the stream and publish half an object, so a thread without interrupts writes it.
        """
        large, (kind, _) = len(content) > _SMALL, guess_type(self.name)

        def put(place: RemotePath) -> None:
            with place.reach(large=large) as client:
                stream = client.open_output_stream(place.path, metadata={"Content-Type": kind} if kind else None)
                stream.write(content)
                stream.close()

        try:
            map_places(put, [self])
        except PlaceError:
            # the upload may be complete even if its response was lost or unexpected
            with suppress(FileNotFoundError, PlaceError):
                if large and self.read_bytes() == content:
                    return
            raise

    def unlink(self, *, missing_ok: bool = True) -> None:
        del missing_ok
        with suppress(FileNotFoundError), self.reach() as client:
            client.delete_file(self.path)

    def remove_folder(self, last: str) -> None:
        (self / last).unlink()
        with suppress(FileNotFoundError), self.reach() as client:
            client.delete_dir(self.path)

    def iterdir(self) -> Iterator["RemotePath"]:
        return self.glob("*")

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yield paths below a folder that match a pattern without `**`. A trailing slash selects only folders."""
        parts = pattern.rstrip("/").split("/")
        for info in self.list_infos(recursive=len(parts) > 1):
            names = info.path.removeprefix(f"{self.path}/").split("/")
            is_wanted = not pattern.endswith("/") or info.type.name == "Directory"
            if is_wanted and len(names) == len(parts) and all(map(fnmatchcase, names, parts)):
                yield RemotePath(self.parts[0], info.path)

    def list_infos(self, *, recursive: bool) -> "list[fs.FileInfo]":
        from pyarrow import fs

        with self.reach() as client:
            found = client.get_file_info(fs.FileSelector(self.path, allow_not_found=True, recursive=recursive))
        return sorted(found, key=lambda info: info.path)

    def find_info(self) -> "fs.FileInfo":
        with self.reach() as client:
            return client.get_file_info([self.path])[0]

    def check_bucket(self) -> None:
        """Raises PlaceError if the bucket is missing or unreachable."""
        bucket = RemotePath(*self.parts[:2])
        try:
            if not bucket.exists():
                raise PlaceError(str(bucket), *_NO_BUCKET, code="no_such_bucket")
        except PlaceError as error:
            # a user who may write objects may lack permission to query the bucket
            if error.code != "access_denied":
                raise

    @contextmanager
    def reach(self, *, large: bool = False) -> "Iterator[fs.FileSystem]":
        """Yield the client for an object. `large` means that more than `_SMALL` bytes will be written.

        Errors in the bucket raise `PlaceError`. A missing object, or an error on this machine, raises `OSError`.
        """
        import pyarrow as pa

        try:
            yield _open_client(self.scheme, large=large)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, FileNotFoundError) or getattr(error, "errno", None) is not None:
                raise
            raise describe_bucket_error(str(self), self.scheme, error) from error


Place = Path | RemotePath


@cache
def _open_client(scheme: str, *, large: bool) -> "fs.FileSystem":
    from pyarrow import fs

    given = os.environ.get
    if scheme == "s3":
        return fs.S3FileSystem(
            # pyarrow ignores these variables, unlike every other client
            endpoint_override=given("AWS_ENDPOINT_URL_S3") or given("AWS_ENDPOINT_URL") or None,
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_SILENT_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            # for a large object, this might write only the beginning
            allow_delayed_open=not large,  # type: ignore[call-arg]  # the stubs lack it
        )
    if scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=_SILENT_SECONDS))
    if not (account := given("AZURE_STORAGE_ACCOUNT")):
        raise PlaceError("az://", "no storage account is set", "set AZURE_STORAGE_ACCOUNT", code="no_storage_account")
    # without a key or token, the `az` login or the machine's identity is used
    key, token = given("AZURE_STORAGE_KEY"), given("AZURE_STORAGE_SAS_TOKEN")
    return fs.AzureFileSystem(account, account_key=key, sas_token=None if key else token)


def find_shipped_folder(name: str) -> Path:
    """Return a folder shipped with gpureport: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    return package / name if (package / name).is_dir() else package.parent / name


def is_bucket_url(text: str) -> bool:
    return text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def parse_place(text: str) -> Place:
    if not (url := _URL.fullmatch(text)):
        return Path(text)
    scheme, path = url[1], url[2].strip("/")
    if scheme not in SCHEMES or not path:
        hint = f"give a path, or a URL such as {SCHEMES[0]}://BUCKET/PATH; known schemes are {', '.join(SCHEMES)}"
        raise SettingsError(text, "this is not the URL of an object in a bucket", hint, code="not_a_place")
    return RemotePath(f"{scheme}:", path)


def map_places(function: Callable[[Item], Result], places: Sequence[Item]) -> list[Result]:
    """Return a function's result for each place. Calls run in parallel, since buckets are slow."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, places))


def fetch(place: Place) -> Path:
    """Return a local path as is, even if missing, or a local copy of an object or folder. Changes are fetched again."""
    if isinstance(place, Path):
        return place
    info = place.find_info()
    objects = [info] if info.is_file else place.list_infos(recursive=True)
    states = tuple((each.path, each.size, each.mtime_ns) for each in objects if each.is_file)
    for path in (place.path, *(path for path, _, _ in states)):
        if {".", ".."} & {*path.split("/")}:
            url, what = f"{place.scheme}://{path}", "a path with . or .. is not fetched"
            raise PlaceError(url, what, "rename the object", code="unsafe_name")
    if not states:
        place.check_bucket()
        return copy_path(place.scheme, place.path)
    return _copy(place, states)


@cache
def _copy(place: RemotePath, states: tuple[tuple[str, int, int | None], ...]) -> Path:
    from pyarrow import fs

    target, local = copy_path(place.scheme, place.path), fs.LocalFileSystem()
    copies = {copy_path(place.scheme, path): size for path, size, _ in states}
    try:
        remove_entry(target)
        for copy in copies:
            copy.parent.mkdir(parents=True, exist_ok=True)
        with place.reach() as client:
            fs.copy_files(place.path, str(target), source_filesystem=client, destination_filesystem=local)
        changed = [copy for copy, size in copies.items() if copy.stat().st_size != size]
    except OSError as error:
        hint = "free some space, or choose another folder for temporary files with TMPDIR"
        code = code_system_error(error, "cannot_write")
        raise PlaceError(str(place), f"cannot be copied to this machine ({error.strerror})", hint, code=code) from error
    if changed:
        hint = "try again when nothing is being written to it"
        raise PlaceError(str(changed[0]), "it changed while being fetched", hint, code="changed_while_read")
    return target


@contextmanager
def stage_folder(place: Place, last: str) -> Iterator[Path]:
    """Yield a folder. On success, files for a bucket are uploaded, with `last` as the final one."""
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="gpureport-") as name:
        yield Path(name)
        send_folder(Path(name), place, last)


def send_folder(folder: Path, target: RemotePath, last: str) -> None:
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    for group in ([name for name in names if name != last], [last]):
        map_places(lambda name: (target / name).write_bytes((folder / name).read_bytes()), group)


def remove_entry(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()

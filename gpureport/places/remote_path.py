"""Objects and folders of a bucket, with the part of pathlib's interface that this project uses."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BytesIO
from mimetypes import guess_type
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from gpureport.errors import PlaceError
from gpureport.places.bucket_access import SMALL, reach_bucket
from gpureport.places.bucket_errors import NO_BUCKET

if TYPE_CHECKING:
    from pyarrow import fs


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RemotePath:
    """An object of a bucket, or a folder, which is there when an object lies in it.

    Methods that reach the bucket raise `PlaceError` when it cannot be reached or refuses.

    Attributes:
        scheme: one of `SCHEMES`.
        path: the bucket, then the key without a slash at either end.
    """

    scheme: str
    path: str

    def __str__(self) -> str:
        """Return its URL."""
        return f"{self.scheme}://{self.path}"

    def __truediv__(self, name: str) -> "RemotePath":
        """Return what lies in it under a name, which may hold slashes."""
        return RemotePath(scheme=self.scheme, path=f"{self.path}/{name}")

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """Its name without the suffix."""
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        """The end of its name, from the last dot."""
        return PurePosixPath(self.path).suffix

    @property
    def parent(self) -> "RemotePath":
        """The folder it lies in; a bucket lies in itself."""
        return RemotePath(scheme=self.scheme, path=self.path.rpartition("/")[0] or self.path)

    @property
    def bucket(self) -> "RemotePath":
        """Its bucket."""
        return RemotePath(scheme=self.scheme, path=self.path.partition("/")[0])

    def exists(self) -> bool:
        """Return whether it is an object or a folder."""
        return self._type_name() != "NotFound"

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return self._type_name() == "File"

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return self._type_name() == "Directory"

    def read_bytes(self) -> bytes:
        """Return the content of an object.

        Raises:
            FileNotFoundError: when there is none.
        """
        with self.reach() as client, client.open_input_file(self.path) as stream:
            return stream.read()

    def read_text(self, encoding: str) -> str:
        """Return the content of an object as text; errors as for `read_bytes`."""
        return self.read_bytes().decode(encoding)

    def open(self, mode: str) -> BytesIO:
        """Return the content of an object as a file; errors as for `read_bytes`. The mode is `rb`."""
        del mode
        return BytesIO(self.read_bytes())

    def write_bytes(self, content: bytes) -> None:
        """Write an object, which appears whole or not at all, with the type that its name tells.

        An interrupt between opening and closing would publish half an object, since a stream is closed when it is
        dropped. Interrupts reach the main thread alone, so that another one writes.
        """
        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(self._put, content).result()
            except PlaceError:
                # the parts may be one object although the answer was lost, or is not as pyarrow expects
                if len(content) <= SMALL or not self._holds(content):
                    raise

    def _holds(self, content: bytes) -> bool:
        """Return whether an object can be read, and has this content."""
        try:
            return self.read_bytes() == content
        except (FileNotFoundError, PlaceError):
            return False

    def _put(self, content: bytes) -> None:
        kind, _ = guess_type(self.name)
        with reach_bucket(str(self), self.scheme, large=len(content) > SMALL) as client:
            stream = client.open_output_stream(self.path, metadata={"Content-Type": kind} if kind else None)
            stream.write(content)
            stream.close()

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove an object.

        Raises:
            FileNotFoundError: when there is none, and it may not be missing.
        """
        try:
            with self.reach() as client:
                client.delete_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_folder(self) -> None:
        """Remove a folder with all that lies in it, where there is one."""
        with suppress(FileNotFoundError), self.reach() as client:
            client.delete_dir(self.path)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a folder is there once something lies in it."""

    def absolute(self) -> "RemotePath":
        """Return itself: a URL means the same wherever it is read."""
        return self

    def iterdir(self) -> Iterator["RemotePath"]:
        """Yield what lies in a folder; nothing where there is none."""
        return self.glob("*")

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yield what lies in or below a folder and matches a pattern; with a slash at its end only folders.

        `**` is not known.
        """
        parts = pattern.rstrip("/").split("/")
        for info in self.list_infos(recursive=len(parts) > 1):
            names = info.path.removeprefix(f"{self.path}/").split("/")
            is_wanted = not pattern.endswith("/") or info.type.name == "Directory"
            if is_wanted and len(names) == len(parts) and all(map(fnmatchcase, names, parts)):
                yield RemotePath(scheme=self.scheme, path=info.path)

    def list_infos(self, *, recursive: bool) -> "list[fs.FileInfo]":
        """Return what pyarrow knows of each object and folder in a folder, of those below as well if `recursive`."""
        from pyarrow import fs  # noqa: PLC0415 - only where a bucket is named

        with self.reach() as client:
            found = client.get_file_info(fs.FileSelector(self.path, allow_not_found=True, recursive=recursive))
        return sorted(found, key=lambda info: info.path)

    def _type_name(self) -> str:
        """Return `File`, `Directory` or `NotFound`."""
        with self.reach() as client:
            (info,) = client.get_file_info([self.path])
        return str(info.type.name)

    def check_bucket(self) -> None:
        """Refuse a bucket that is not there, before the work whose result goes there.

        Raises:
            PlaceError: when it is not there, or cannot be reached.
        """
        try:
            is_there = self.bucket.exists()
        except PlaceError as error:
            # whoever may write objects need not be allowed to ask for the bucket
            if error.code != "access_denied":
                raise
            return
        if not is_there:
            raise PlaceError(str(self.bucket), *NO_BUCKET, code="no_such_bucket")

    def reach(self) -> "AbstractContextManager[fs.FileSystem]":
        """Return the client that reaches it; errors as for `reach_bucket`."""
        return reach_bucket(str(self), self.scheme)

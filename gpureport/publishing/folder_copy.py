"""A report copied into a folder; it appears whole or not at all."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from gpureport.errors import RenderError, SourceError
from gpureport.places import Place, RemotePath
from gpureport.places.transfer import write_part
from gpureport.places.written_paths import ReadPath, WrittenPath, refuse_taken_paths


def check_copies(files: Sequence[Place], folders: Sequence[Place]) -> None:
    """Refuse copies that would replace what is published, another copy, or what somebody else keeps.

    Raises:
        SourceError: naming the file or the folder; nothing is copied then.
    """
    copies = [(file, folder / file.name) for folder in folders for file in files]
    for file, copy in copies:
        if isinstance(file, Path) and isinstance(copy, Path) and copy.exists() and copy.samefile(file):
            raise SourceError(str(file), "it is there already", "name another folder", code="file_taken")
    try:
        refuse_taken_paths(
            [WrittenPath(place=copy) for _, copy in copies], [ReadPath(place=each, name="published") for each in files]
        )
    except RenderError as error:
        raise SourceError(error.where, error.what, error.hint, code=error.code) from error


def copy_to_folder(file: Path, folder: Place) -> str:
    """Copy a file into a folder, made where there is none; return its path there.

    One of the same name is replaced.

    Raises:
        PlaceError: when the bucket of the folder cannot be reached, or refuses.
        SourceError: when the folder cannot be written to.
    """
    if isinstance(folder, RemotePath):
        (folder / file.name).write_bytes(file.read_bytes())
        return str(folder / file.name)
    target = folder / file.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with write_part(target) as part:
            shutil.copyfile(file, part)
            part.chmod(0o644)
    except OSError as error:
        raise SourceError(
            str(folder), error.strerror or "cannot be written", "check permissions and space", code="cannot_write"
        ) from error
    return str(target)

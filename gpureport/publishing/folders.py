"""A report copied into a folder, of this machine or of a bucket; it appears whole or not at all."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from gpureport.errors import RenderError, SettingsError, SourceError
from gpureport.importers.mlflow.runs import is_store_scheme, refuse_database_server
from gpureport.places import Place, RemotePath, parse_place
from gpureport.places.transfer import write_part
from gpureport.places.written_paths import ReadPath, WrittenPath, refuse_taken_paths

# of two letters at least: a drive of Windows has one
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def parse_folder(target: str) -> Place:
    """Return the folder that a target names; a word and a colon never silently name a new one."""
    match = _SCHEME.match(target)
    scheme = match[1].lower() if match else ""
    if scheme in {"neptune", "trackio", "accounting"} or (match is None and _names_run(target)):
        what = "nothing can be published to Neptune, Trackio or a table"
        raise SourceError(target, what, "give a folder, or mlflow:STORE#RUN", code="read_only_store")
    refuse_database_server(scheme, target)
    if match is None or (not is_store_scheme(scheme) and target[match.end() :].startswith("//")):
        return parse_place(target)
    what = f"{match[0]} is not a known kind of target"
    hint = f"write ./{target} for a folder of that name, or give a folder, s3://BUCKET/FOLDER or mlflow:STORE#RUN"
    if is_store_scheme(scheme):
        what, hint = f"{scheme}: does not name a folder", f"write mlflow:{target} for a store of MLflow"
    raise SettingsError(target, what, hint, code="not_a_publish_target")


def _names_run(target: str) -> bool:
    if "#" not in target:
        return False
    from gpureport.importers.sources import names_run

    return names_run(target)


def check_copies(files: Sequence[Place], folders: Sequence[Place]) -> None:
    """Refuse copies that would replace what is published, another copy, or what somebody else keeps."""
    copies = [(file, folder / file.name) for folder in folders for file in files]
    for file, copy in copies:
        if isinstance(file, Path) and isinstance(copy, Path) and copy.exists() and copy.samefile(file):
            raise SourceError(str(file), "it already exists", "name another folder", code="file_taken")
    read = [ReadPath(place=each, name="published") for each in files]
    try:
        refuse_taken_paths([WrittenPath(place=copy) for _, copy in copies], read)
    except RenderError as error:
        raise SourceError(error.where, error.what, error.hint, code=error.code) from error


def copy_to_folder(file: Path, folder: Place) -> str:
    """Copy a file into a folder, made where there is none, over one of the same name; return its path there."""
    if isinstance(folder, RemotePath):
        (folder / file.name).write_bytes(file.read_bytes())
        return str(folder / file.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with write_part(folder / file.name) as part:
            shutil.copyfile(file, part)
            part.chmod(0o644)
    except OSError as error:
        raise refuse_writing(error, folder) from error
    return str(folder / file.name)


def refuse_writing(error: OSError, folder: Path) -> SourceError:
    """Return the error of a folder that cannot be written to."""
    what, hint = error.strerror or "cannot be written", "check permissions and space"
    return SourceError(str(folder), what, hint, code="cannot_write")

"""Which folder a target names: one of this machine, or of a bucket."""

import re

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.mlflow.runs import is_store_scheme, refuse_database_server
from gpureport.places import Place, parse_place

# of two letters at least: a drive of Windows has one
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def parse_folder(target: str) -> Place:
    """Return the folder that a target names.

    A word and a colon begin a tracker or bucket, and never silently name a new folder.

    Raises:
        SettingsError: when it begins with a scheme that is not known.
        SourceError: when it is a run or a store of Neptune or Trackio, or a database server.
    """
    match = _SCHEME.match(target)
    if match is None:
        _refuse_run(target)
        return parse_place(target)
    scheme = match[1].lower()
    if scheme in {"neptune", "trackio", "accounting"}:
        raise _build_read_only_error(target)
    refuse_database_server(scheme, target)
    if is_store_scheme(scheme):
        raise SettingsError(
            target,
            f"{scheme}: names no folder",
            f"write mlflow:{target} for a store of MLflow",
            code="not_a_publish_target",
        )
    if not target[match.end() :].startswith("//"):
        hint = f"write ./{target} for a folder of that name, or give a folder, s3://BUCKET/FOLDER or mlflow:STORE#RUN"
        raise SettingsError(
            target, f"{match[0]} is not known as the beginning of a target", hint, code="not_a_publish_target"
        )
    return parse_place(target)


def _refuse_run(target: str) -> None:
    if "#" in target:
        from gpureport.importers.sources import names_run  # noqa: PLC0415 - loads numpy and pyarrow

        if names_run(target):
            raise _build_read_only_error(target)


def _build_read_only_error(target: str) -> SourceError:
    what = "nothing can be published to Neptune, Trackio or a table"
    return SourceError(target, what, "give a folder, or mlflow:STORE#RUN", code="read_only_store")

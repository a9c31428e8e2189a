"""Reports and figures put where people look: a folder, or runs of MLflow."""

from collections.abc import Callable, Sequence
from functools import partial

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import MLFLOW, PREFIX
from gpureport.importers.mlflow.stores import refuse_artifacts
from gpureport.importers.protocol.tracker import split_locator
from gpureport.places import Place, RemotePath
from gpureport.places.transfer import fetch
from gpureport.publishing import folders


def prepare(
    files: Sequence[Place], targets: Sequence[str], *, skip_missing: bool = False, follow_artifact_uri: bool = False
) -> list[Callable[[], str]]:
    """Return what puts files somewhere, a call each, which returns in a line what it did.

    All that can be known before is checked here, for every target, so that nothing is put anywhere when one is wrong,
    which a `GpureportError` says. A target is a folder, of a bucket too, or `mlflow:STORE#RUN`; for `mlflow:STORE` one
    of the files is the JSON of a comparison, and the others are artifacts of each of its runs. `skip_missing` leaves
    out those that the store lacks; `follow_artifact_uri` puts artifacts also where a store says, outside its folder.
    """
    places = {target: folders.parse_folder(target) for target in targets if not _is_mlflow_target(target)}
    for folder in places.values():
        if not isinstance(folder, RemotePath):
            refuse_artifacts(folder, "mlflow:STORE#RUN")
    copies = [fetch(file) if isinstance(file, RemotePath) else file for file in files]
    if missing := next((copy for copy in copies if not copy.is_file()), None):
        hint = "write a report first: gpureport report RUN -o report.html"
        raise SourceError(str(missing), "no such file", hint, code="no_such_file")
    folders.check_copies(files, [*places.values()])
    puts: list[Callable[[], str]] = []
    for target in targets:
        if target in places:
            puts += [partial(folders.copy_to_folder, file, places[target]) for file in copies]
            continue
        from gpureport.publishing.mlflow_runs import prepare_mlflow

        puts += prepare_mlflow(copies, target, skip_missing=skip_missing, follow_uri=follow_artifact_uri)
    return puts


def _is_mlflow_target(target: str) -> bool:
    return target.startswith(PREFIX) or ("://" not in target and MLFLOW.claims(split_locator(target, PREFIX)[0]))

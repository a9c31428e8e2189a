"""Files put on one run of MLflow, or a comparison put on each of its runs."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import Store, open_store
from gpureport.importers.protocol.tracker import Selection, select_runs
from gpureport.publishing.mlflow_artifacts import prepare_artifact
from gpureport.publishing.mlflow_figures import KIND, prepare_figures
from gpureport.publishing.published_figures import is_comparison, read_run_figures
from gpureport.redaction import redact_text
from gpureport.report.wording import display

_NAMED = 5
"""Most runs of a comparison that are named."""


def prepare_mlflow(
    files: Sequence[Path], target: str, *, skip_missing: bool, follow_artifact_uri: bool = False
) -> list[Callable[[], str]]:
    """Return what puts files among the artifacts of the run that is named, or a comparison on each of its runs.

    Args:
        files: the files.
        target: `mlflow:STORE#RUN`, or `mlflow:STORE` for a comparison.
        skip_missing: whether runs of the comparison that the store lacks are left out.
        follow_artifact_uri: whether artifacts may be put outside the folder of the store.

    Returns:
        calls, each of which returns in a line what it did.

    Raises:
        SourceError: when there is no such store or run, or it cannot be written to.
    """
    store, named = open_store(target)
    if named is None:
        return _prepare_comparison(
            store, files, target, skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri
        )
    (run,), _ = select_runs(store, named, Selection())
    puts = [prepare_artifact(store, run, file, follow_artifact_uri=follow_artifact_uri) for file in files]
    return [partial(_put, put, file, target) for put, file in zip(puts, files, strict=True)]


def _put(put: Callable[[], str], file: Path, target: str) -> str:
    return put() + _explain_unwritten(file, target)


def _explain_unwritten(file: Path, target: str) -> str:
    """Return that figures of a comparison are not written to its run, and what would; else nothing."""
    if not is_comparison(file):
        return ""
    try:
        runs = [run.name for run in read_run_figures(file) if run.tracker_id(KIND) is not None]
    except SourceError as error:
        return f"; no figures were written: {error.what}"
    if not runs:
        return "; no figures were written: none of its runs was read from MLflow"
    whose = display.join_words(runs) if len(runs) <= _NAMED else f"its {len(runs)} runs"
    return f"; no figures were written: --to {redact_text(target.partition('#')[0])} writes them to {whose}"


def _prepare_comparison(
    store: Store, files: Sequence[Path], target: str, *, skip_missing: bool, follow_artifact_uri: bool
) -> list[Callable[[], str]]:
    comparisons = [file for file in files if is_comparison(file)]
    if len(comparisons) != 1:
        what = "it names no run" if not comparisons else "two comparisons, of which a run gets one"
        hint = "give mlflow:STORE#RUN, or the JSON of one comparison: gpureport compare BASE NEXT --format json"
        raise SourceError(target, what, hint, code="unknown_run")
    runs, write_figures = prepare_figures(store, comparisons[0], skip_missing=skip_missing)
    artifacts = [
        prepare_artifact(store, run, file, follow_artifact_uri=follow_artifact_uri)
        for run in runs
        for file in files
        if file not in comparisons
    ]
    named = ", ".join(run.name or run.id for run in runs)
    return [lambda: f"figures of {named} to {store.where}: {write_figures()} of {len(runs)} runs changed", *artifacts]

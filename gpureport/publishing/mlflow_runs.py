"""Adds files to an MLflow run as artifacts, and a comparison's figures to each compared run."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from gpureport.comparison.figures import TRAINING_RATE
from gpureport.comparison.verdict import Verdict
from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import PREFIX, PUBLISHED_PREFIX, Store, open_store
from gpureport.importers.mlflow.server import Server, SignedServer, call_mlflow, load_mlflow
from gpureport.importers.mlflow.stores import ARTIFACT_FOLDER, Database, Folder, folder_of_uri
from gpureport.importers.protocol import RunInfo, Selection, select_runs, split_locator
from gpureport.publishing import copy_to_folder, refuse_writing
from gpureport.report.formats.comparison_json import SCHEMA
from gpureport.store import atomic_writes

Put = Callable[[], str]


def prepare_mlflow(files: Sequence[Path], target: str, *, skip_missing: bool, follow_uri: bool) -> list[Put]:
    place, named = split_locator(target, PREFIX)
    store = open_store(place)
    if named is not None:
        (run,), _ = select_runs(store, named, Selection())
        return [_prepare_artifact(store, run, file, follow_uri=follow_uri) for file in files]
    comparisons = [file for file in files if is_comparison(file)]
    if len(comparisons) != 1:
        what = "it does not name a run" if not comparisons else "more than one comparison was given"
        hint = "give mlflow:STORE#RUN, or the JSON of one comparison: gpureport compare BASE NEXT --format json"
        raise SourceError(target, what, hint, code="unknown_run")
    found = _find_runs(store, read_run_figures(comparisons[0]), skip_missing=skip_missing)
    if isinstance(store, Database):
        _refuse_migration(store)

    def write_figures() -> str:
        changed = sum([_write(store, run, figures) for run, figures in found])
        named = ", ".join(run.name or run.id for run, _ in found)
        return f"figures of {named} to {store.where}: {changed} of {len(found)} runs changed"

    others = [(run, file) for run, _ in found for file in files if file not in comparisons]
    return [write_figures, *(_prepare_artifact(store, *each, follow_uri=follow_uri) for each in others)]


def _prepare_artifact(store: Store, run: RunInfo, file: Path, *, follow_uri: bool) -> Put:
    """Return a function that adds a file to a run's artifacts and returns its location.

    Whoever wrote the store chose the folder, so the user must allow writing outside the store.
    """
    if not isinstance(store, Server):
        folder, stated = store.artifact_folder(run), folder_of_uri(run.artifact_uri)
        # the store may come from another machine that had this folder
        if stated and any(parent.is_dir() and parent.name for parent in list(stated.parents)[:3]):
            folder = folder or stated
        elif isinstance(store, Database) and not stated:
            folder = folder or folder_of_uri(run.artifact_uri, store.path.parent)
            if folder is None:
                what = f"its runs keep artifacts in {urlsplit(run.artifact_uri).scheme or 'an unknown place'}"
                raise SourceError(store.where, what, "give the URL of its server", code="foreign_artifacts")
        folder = folder or store.home(run).joinpath("artifacts")
        if not follow_uri and not (folder / ARTIFACT_FOLDER).resolve().is_relative_to(store.root):
            what = f"it keeps artifacts outside the store, in {folder}"
            raise SourceError(store.where, what, "add --follow-artifact-uri if you trust it", code="foreign_artifacts")
        after = ""
        if stated is not None and stated.resolve() != folder.resolve():
            after = f"; MLflow looks in {stated} on another machine, so copy it there"
        return lambda: copy_to_folder(file, folder / ARTIFACT_FOLDER) + after
    parts, name = urlsplit(run.artifact_uri), f"{ARTIFACT_FOLDER}/{file.name}"
    if parts.scheme in {"", "file"}:
        what = f"its runs keep artifacts in a folder on the server, {run.artifact_uri}"
        hint = "publish to its database on that machine, or start the server with --serve-artifacts"
        raise SourceError(store.where, what, hint, code="foreign_artifacts")

    def put() -> str:
        if parts.scheme == "mlflow-artifacts" and not isinstance(store, SignedServer):
            path = quote(str(PurePosixPath(parts.path.lstrip("/")) / name))
            store.request("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{path}", file.read_bytes())
        else:
            # MLflow's own client knows how to reach artifacts in a bucket
            uri = store.uri if isinstance(store, SignedServer) else store.where
            call_mlflow(uri, store.where, lambda _, client: client.log_artifact(run.id, str(file), ARTIFACT_FOLDER))
        store.ask("runs/set-tag", {"run_id": run.id, "key": f"{PUBLISHED_PREFIX}report", "value": name}, post=True)
        return f"{store.where}#{run.id}, {name}"

    return put


_NAMES = "step judged_by compared_with verdict change change_since_first training_verdict training_change quality"
_TAGS = tuple(f"{PUBLISHED_PREFIX}{name}" for name in _NAMES.split())


class RunFigures(NamedTuple):
    name: str
    run_id: str | None
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


def is_comparison(file: Path) -> bool:
    # the schema name is at the beginning of the file, which may be large
    with suppress(OSError), file.open("rb") as opened:
        return f'"{SCHEMA}"'.encode() in opened.read(200)
    return False


def read_run_figures(file: Path) -> list[RunFigures]:
    hint = "write one: gpureport compare BASE NEXT --format json"
    try:
        return [*_read_runs(json.loads(file.read_text(encoding="utf-8")))]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SourceError(
            str(file), "not a JSON comparison from this version", hint, code="not_a_comparison_document"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(str(file), "cannot be read as JSON", hint, code="not_json") from error


def _read_runs(document: Mapping[str, Any]) -> Iterator[RunFigures]:
    labels = [step["label"] for step in document["steps"]]
    for place, step in enumerate(document["steps"]):
        tags = {"step": step["label"], "judged_by": document["primary"]}
        tags |= _describe_changes(document, labels[: place + 1]) if place else {}
        for run in step["runs"]:
            located = (each["locator"] for each in run["sources"] if each["kind"] == "mlflow")
            run_id = next((locator.rpartition("#")[2] for locator in located if "#" in locator), None)
            known = {**run["measures"], "lost_ratio": run["lost_ratio"]}
            metrics = {f"{PUBLISHED_PREFIX}{name}": float(each) for name, each in known.items() if each is not None}
            yield RunFigures(run["name"], run_id, metrics, {f"{PUBLISHED_PREFIX}{name}": tags[name] for name in tags})


def _describe_changes(document: Mapping[str, Any], labels: Sequence[str]) -> dict[str, str]:
    base, step = labels[-2:]
    tags = {"compared_with": base}
    found = (each for each in document["deltas"] if (each["device"], each["step"]) == (None, step))
    changes = {(each["metric"], each["base"]): each for each in found}
    for metric, prefix in ((document["primary"], ""), (TRAINING_RATE, "training_")):
        before, first = changes.get((metric, base)), changes.get((metric, labels[0]))
        # a rate has no verdict if neither step recorded it
        if before is not None and not (prefix and before["before"] is before["after"] is None):
            tags[f"{prefix}verdict"] = before["verdict"]
            tags[f"{prefix}change"] = _format_change(before)
        if first is not None and not prefix:
            tags["change_since_first"] = _format_change(first)
    pair = (base, step, True)
    quality = (each for each in document["quality"] if (each["base"], each["step"], each["leading"]) == pair)
    tags["quality"] = "; ".join(filter(None, map(_format_quality, quality)))
    return {name: text for name, text in tags.items() if text}


def _format_quality(change: Mapping[str, Any]) -> str:
    values = []
    for figure in (change["before"], change["after"]):
        value = figure["final"] if figure.get("at_work") is None else figure["at_work"]
        if value is None and not figure["diverged"]:
            return ""
        values.append("not a number" if value is None else f"{value:.4g}")
    # the document may be from an older version, which compared final values
    work = "" if change.get("at_end", True) else f" at {change['work']:.6g} {change['work_unit']}"
    return f"{change['name']} {values[0]} to {values[1]}{work}: {change['verdict']}"


def _format_change(delta: Mapping[str, Any]) -> str:
    """Return a change and its interval in % or points, in ASCII for some databases."""
    difference, before, share = delta["difference"], delta["before"], delta["unit"] == "1"
    if difference is None or (not share and not before) or delta["verdict"] == Verdict.NOT_ENOUGH_DATA:
        return ""
    whole, unit = (1, " points") if share else (before, "%")
    amounts = [f"{amount / whole * 100:+.0f}" for amount in (difference, *(delta["interval"] or ()))]
    return f"{amounts[0]}{unit}" + (f" ({amounts[1]} to {amounts[2]}{unit})" if len(amounts) > 1 else "")


def _find_runs(store: Store, known: Sequence[RunFigures], *, skip_missing: bool) -> list[tuple[RunInfo, RunFigures]]:
    looked = [(store.run(figures.run_id) if figures.run_id else None, figures) for figures in known]
    found = [(run, figures) for run, figures in looked if run is not None and not run.deleted]
    if not found:
        what = "none of the runs in this comparison is in the store"
        hint = "compare runs that MLflow recorded: mlflow:STORE#RUN"
        raise SourceError(store.where, what, hint, code="not_a_tracked_run")
    lost = [figures.name for run, figures in looked if run is None or run.deleted]
    if lost and not skip_missing:
        what = f"nothing was written, because some compared runs are not in the store: {', '.join(lost)}"
        raise SourceError(store.where, what, "write to the others with --skip-missing", code="unknown_run")
    return found


def _write(store: Store, run: RunInfo, figures: RunFigures) -> bool:
    # all published values have step 0, so the latest value is used
    published, _, present, _ = store.read(run, PUBLISHED_PREFIX)
    latest = {key: float(points.values[-1]) for key, points in published.items() if len(points.values)}
    metrics = {key: value for key, value in figures.metrics.items() if latest.get(key) != value}
    tags = {key: text for key, text in figures.tags.items() if present.get(key) != text}
    outdated = [key for key in _TAGS if key in present and key not in figures.tags]

    def log(mlflow: Any, client: Any) -> None:
        if metrics or tags:
            now = time.time_ns() // 1_000_000
            values = [mlflow.entities.Metric(*item, now, 0) for item in metrics.items()]
            client.log_batch(run.id, values, tags=[mlflow.entities.RunTag(*item) for item in tags.items()])
        for key in outdated:
            client.delete_tag(run.id, key)

    if not (metrics or tags or outdated):
        return False
    if isinstance(store, Server):
        store.write_figures(run, metrics, tags, outdated)
    elif isinstance(store, Folder):
        _write_to_folder(store, run, metrics, tags, outdated)
    else:
        call_mlflow(f"sqlite:///{store.path.resolve()}", store.where, log)
    return True


def _write_to_folder(
    store: Folder, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], outdated: Sequence[str]
) -> None:
    """Write each file in an `mlruns` folder atomically; MLflow's client has refused such folders since 3.13."""
    home, now = store.home(run), time.time_ns() // 1_000_000

    def find(part: str, key: str) -> Path:
        if not (home / part / key).resolve().is_relative_to(store.root):
            what, hint = "a link points outside the store", "replace the link with its target"
            raise SourceError(str(home / part / key), what, hint, code="link_out_of_folder")
        (home / part).mkdir(exist_ok=True)
        return home / part / key

    try:
        contents = {find("tags", key): text.encode() for key, text in tags.items()}
        for key, value in metrics.items():
            file = find("metrics", key)
            points = file.read_bytes() if file.exists() else b""
            # a killed writer may have left a partial line
            contents[file] = points[: points.rfind(b"\n") + 1] + f"{now} {value} 0\n".encode()
        for file, content in contents.items():
            # temporary files are in the run's folder, since MLflow reads all files in its subfolders
            atomic_writes.replace_file(file, content, home)
        for key in outdated:
            find("tags", key).unlink(missing_ok=True)
    except OSError as error:
        raise refuse_writing(error, home) from error


def _refuse_migration(store: Database) -> None:
    try:
        mlflow = load_mlflow(store.where)
        from alembic.script import ScriptDirectory
    except (ImportError, SourceError) as error:
        what = "writing figures to a database requires MLflow's own client"
        raise SourceError(
            store.where, what, "pip install 'gpureport[mlflow]', or give the URL of its server", code="not_installed"
        ) from error
    current = ScriptDirectory(str(Path(mlflow.__file__).parent / "store" / "db_migrations")).get_current_head()
    if store.version != f"schema {current}":
        what = f"its {store.version or 'schema'} does not match MLflow {mlflow.__version__}, which would migrate it"
        hint = "give the URL of a server of that version, or migrate it with mlflow db upgrade"
        raise SourceError(store.where, what, hint, code="other_schema")

"""Figures of a comparison written back to its runs of MLflow, as metrics and tags."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import PUBLISHED_PREFIX, Store
from gpureport.importers.mlflow.server import Server, call_client, load_mlflow
from gpureport.importers.mlflow.stores import Database, Folder
from gpureport.importers.protocol.tracker import RunInfo
from gpureport.publishing.published_figures import TAG_NAMES, RunFigures, read_run_figures
from gpureport.store import atomic_writes


class FolderWriter:
    """Writes to runs of a `mlruns` folder, which MLflow's own client refuses since 3.13."""

    def __init__(self, store: Folder) -> None:
        self._store = store

    def log_figures(self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], now: int) -> None:
        """Add a line to each metric, at a time in milliseconds, and write tags of a run.

        Each file is replaced whole, so that nobody reads half a line or an empty tag.

        Raises:
            SourceError: when the folder of the run cannot be written to.
        """
        with self._raise_source_errors(run):
            for key, value in metrics.items():
                file = self._file(run, "metrics", key)
                points = file.read_bytes() if file.exists() else b""
                # the line of a writer that was killed may have been cut anywhere
                whole = points[: points.rfind(b"\n") + 1]
                self._replace(run, file, whole + f"{now} {value} 0\n".encode())
            for key, text in tags.items():
                self._replace(run, self._file(run, "tags", key), text.encode())

    def remove_tag(self, run: RunInfo, key: str) -> None:
        """Remove a tag of a run; errors as for `log_figures`."""
        with self._raise_source_errors(run):
            self._file(run, "tags", key).unlink(missing_ok=True)

    def _file(self, run: RunInfo, part: str, key: str) -> Path:
        folder = self._store.home(run) / part
        if not (folder / key).resolve().is_relative_to(self._store.root):
            raise SourceError(
                str(folder / key),
                "a link leads out of the store",
                "replace the link by what it leads to",
                code="link_out_of_folder",
            )
        folder.mkdir(exist_ok=True)
        return folder / key

    def _replace(self, run: RunInfo, file: Path, content: bytes) -> None:
        # beside the folders of the run: MLflow takes every file in them for a metric or a tag
        atomic_writes.replace_file(file, content, self._store.home(run))

    @contextmanager
    def _raise_source_errors(self, run: RunInfo) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what, hint = error.strerror or "cannot be written", "check permissions and space"
            raise SourceError(str(self._store.home(run)), what, hint, code="cannot_write") from error


class DatabaseWriter:
    """Writes to runs of a database through MLflow's own client."""

    def __init__(self, store: Database) -> None:
        self._call = partial(call_client, f"sqlite:///{store.path.resolve()}", store.where)
        self._entities = load_mlflow(store.where, ".entities")

    def log_figures(self, run: RunInfo, metrics: Mapping[str, float], tags: Mapping[str, str], now: int) -> None:
        """Log one value of each metric, at a time in milliseconds, and set tags of a run."""
        values = [self._entities.Metric(key, value, now, 0) for key, value in metrics.items()]
        labels = [self._entities.RunTag(key, text) for key, text in tags.items()]
        self._call("log_batch", run.id, metrics=values, tags=labels)

    def remove_tag(self, run: RunInfo, key: str) -> None:
        """Remove a tag of a run."""
        self._call("delete_tag", run.id, key)


Writer = Server | DatabaseWriter | FolderWriter
KIND = "mlflow"


def prepare_figures(store: Store, comparison: Path, *, skip_missing: bool) -> tuple[list[RunInfo], Callable[[], int]]:
    """Return the runs of a comparison that a store has, and a call that writes their figures and counts who changed.

    A metric is logged only where its last value is another, a tag set only where it has another text, so that doing it
    again changes nothing. Tags of an earlier comparison that no longer apply are removed.

    Args:
        store: the store.
        comparison: the JSON of the comparison.
        skip_missing: whether runs that the store lacks are left out; else they are errors.

    Raises:
        SourceError: when the comparison cannot be read, a run is missing, or the store cannot be written to.
    """
    found, missing = _find_runs(store, read_run_figures(comparison))
    if not found:
        what = "none of the runs of this comparison is in the store"
        raise SourceError(
            store.where, what, "compare runs that MLflow recorded: mlflow:STORE#RUN", code="not_a_tracked_run"
        )
    if missing and not skip_missing:
        raise SourceError(
            store.where,
            f"not every run of the comparison is in the store, and nothing was written; missing: {', '.join(missing)}",
            "write to the others with --skip-missing",
            code="unknown_run",
        )
    writer = _open_writer(store)

    def write_figures() -> int:
        now = time.time_ns() // 1_000_000
        # not a generator: every run is written to
        return sum([_write(store, writer, run, figures, now) for run, figures in found])

    return [run for run, _ in found], write_figures


def _find_runs(store: Store, known: Sequence[RunFigures]) -> tuple[list[tuple[RunInfo, RunFigures]], list[str]]:
    """Return the runs that the store has, with their figures, and the names of the others."""
    found, missing = [], []
    for figures in known:
        key = figures.tracker_id(KIND)
        run = None if key is None else store.run(key)
        if run is None or run.deleted:
            missing.append(figures.name)
        else:
            found.append((run, figures))
    return found, missing


def _write(store: Store, writer: Writer, run: RunInfo, figures: RunFigures, now: int) -> bool:
    """Write what the run does not have yet; return whether there was anything."""
    # what is published stands at step 0, so the latest value counts
    published, _, present, _ = store.read(run, PUBLISHED_PREFIX)
    latest = {key: float(points.values[-1]) for key, points in published.items() if len(points.values)}
    metrics = {f"{PUBLISHED_PREFIX}{name}": value for name, value in figures.metrics.items()}
    tags = {f"{PUBLISHED_PREFIX}{name}": text for name, text in figures.tags.items()}
    metrics = {key: value for key, value in metrics.items() if latest.get(key) != value}
    outdated = [key for name in TAG_NAMES if (key := f"{PUBLISHED_PREFIX}{name}") in present and key not in tags]
    tags = {key: text for key, text in tags.items() if present.get(key) != text}
    if metrics or tags:
        writer.log_figures(run, metrics, tags, now)
    for key in outdated:
        writer.remove_tag(run, key)
    return bool(metrics or tags or outdated)


def _open_writer(store: Store) -> Writer:
    """Return what writes to a store: its server, MLflow's client for a database, else our own."""
    if isinstance(store, Server):
        return store
    if isinstance(store, Folder):
        return FolderWriter(store)
    _refuse_migration(store)
    return DatabaseWriter(store)


def _refuse_migration(store: Database) -> None:
    """Refuse a database that MLflow's client would bring to another version by opening it.

    Raises:
        SourceError: when the database is of another version than the client, or there is no client.
    """
    try:
        mlflow = load_mlflow(store.where)
        from alembic.script import ScriptDirectory  # noqa: PLC0415 - comes with it
    except (ImportError, SourceError) as error:
        what = "writing figures to a database needs MLflow's own client"
        hint = "pip install 'gpureport[mlflow]', or give the URL of its server"
        raise SourceError(store.where, what, hint, code="not_installed") from error
    current = ScriptDirectory(str(Path(mlflow.__file__).parent / "store" / "db_migrations")).get_current_head()
    if store.version != f"schema {current}":
        what = f"its {store.version or 'schema'} is not that of MLflow {mlflow.__version__}, which would migrate it"
        hint = "give the URL of a server of its version, or migrate it yourself: mlflow db upgrade"
        raise SourceError(store.where, what, hint, code="other_schema")

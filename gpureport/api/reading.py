"""`gpureport.read`."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as list_fields
from pathlib import Path
from typing import Any

from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.reading import Reading, find_runs
from gpureport.importers.sources import find_tracker, identify_training_logs
from gpureport.places import RemotePath, is_bucket_url, parse_place
from gpureport.places.transfer import fetch
from gpureport.recording import Recording, Work

Paths = str | Path | Sequence[str | Path]  # one, or several


def read(  # noqa: PLR0913 - each option is given by name
    source: str | Path,
    *,
    host: Paths = (),
    training: Paths = (),
    labels: Mapping[str, Any] | None = None,
    as_one_run: bool = False,
    tz: str | None = None,
    gpus: int | Sequence[int] | None = None,
    columns: str | Sequence[str] | None = None,
    interval: float | None = None,
    gpus_per_tick: int | None = None,
    column_map: str | Path | None = None,
    tracker: Mapping[str, Any] | None = None,
    mlflow_raw_times: bool = False,
) -> list[Recording]:
    """Return every run that a log, a folder of logs, or the store of a tracker holds.

    Logs of one machine and the same minutes are one run.

    Args:
        source: a log, a folder with logs in it or below, `mlflow:STORE#RUN` or `neptune:PATH#RUN`. Here and for `host`
            and `training`, `s3://BUCKET/PATH` names one in a bucket.
        host: CPU logs, or further GPU logs of the run, to join by time.
        training: logs of training metrics. Without them, those that lie in a folder `source` are read.
        labels: what the logs do not say: `name`, `step`, `params` and `tags` (dicts), and `work`, what the run did in
            all, as `"12000:steps"` or `(12000, "steps")`; `table`, the file of a table of jobs as `sacct -P`
            prints, from which user, account, job and node become tags.
        as_one_run: whether all logs of the folder are one run.
        tz: time zone of the stamps, such as `"Europe/Berlin"`, where the log names none.
        gpus: indices of the GPUs to keep; all when None.
        columns: query fields of a log without a header, in order: `"timestamp,index,utilization.gpu"` or a list.
        interval: seconds between samples of a log without time stamps.
        gpus_per_tick: number of GPUs of a log in which no column distinguishes them.
        column_map: TOML file that says what the columns of an unknown table mean.
        tracker: which runs of a tracker to read: `runs`, `experiment`, `project`, `filter`, `latest`, `children`,
            `stage`, `group`, `gpu_memory_total` (bytes), `throughput`, `require_hardware`.
        mlflow_raw_times: whether system metrics of MLflow stay at the times they were logged at.

    Raises:
        PlaceError: when a bucket cannot be reached, or refuses.
        SourceError: when the source is missing or holds nothing that can be used.
        TypeError: when a key of `labels` or `tracker` is unknown.

    Warns:
        UserWarning: of each run of a tracker that cannot be read. The other runs are returned.
    """
    source, hosts, trained = _fetch(source), list(map(_fetch, _paths(host))), list(map(_fetch, _paths(training)))
    if tracker:
        from gpureport.importers.protocol.tracker import Selection

        _check_keys("tracker", tracker, {field.name for field in list_fields(Selection)} - {"map"})
    mapping = None
    if column_map:
        from gpureport.importers.tools.mapped import read_column_map

        mapping = read_column_map(Path(column_map))
    fields = columns.split(",") if isinstance(columns, str) else columns
    options = ReadOptions(
        tz=tz or (mapping.zone if mapping else None),
        gpus=tuple(sorted({gpus} if isinstance(gpus, int) else set(gpus))) if gpus is not None else None,
        columns=None if fields is None else tuple(field.strip() for field in fields),
        interval=interval,
        gpus_per_tick=gpus_per_tick,
        map=mapping,
        as_logged=mlflow_raw_times,
    )
    named = _read_labels(labels or {})
    kind = "mapped" if mapping else "nvidia_smi" if columns is not None else None
    store = None if as_one_run or kind else find_tracker(str(source))
    if store is not None:
        return list(_read_tracked(store, str(source), options, named, tracker or {}))
    from gpureport.importers.runs import find_run_logs, find_training_logs

    runs = [find_run_logs([source], hosts, kind, options)] if as_one_run else find_runs(source, hosts, kind, options)
    beside = [identify_training_logs(trained)] * len(runs)
    if Path(source).is_dir() and not trained and not as_one_run:
        beside = find_training_logs([source] * len(runs), runs)
    named = named.of_several() if len(runs) > 1 else named
    return [
        Reading(inputs, options, named, training=found).recording() for inputs, found in zip(runs, beside, strict=True)
    ]


def _read_tracked(
    store: Any, source: str, options: ReadOptions, labels: Labels, selection: Mapping[str, Any]
) -> Iterator[Recording]:
    """Yield the selected runs of a tracker, and warn of those that cannot be read."""
    from gpureport.importers.protocol.tracker import Selection, split_readable
    from gpureport.importers.tracked import TrackedReading

    runs = selection.get("runs", ())
    selected = Selection(**{**selection, "runs": (runs,) if isinstance(runs, str) else tuple(runs)})
    chosen = store.runs(source, selected)
    readable, faults = split_readable(chosen.runs)
    for fault in faults:
        warnings.warn(f"{fault}; the other runs are read", stacklevel=4)
    yield from (TrackedReading(chosen, run, options, labels, strict=False).recording() for run in readable)


def _read_labels(labels: Mapping[str, Any]) -> Labels:
    _check_keys("labels", labels, {field.name for field in list_fields(Labels)})
    made = {key: tuple((str(k), str(v)) for k, v in labels.get(key, {}).items()) for key in ("params", "tags")}
    given = {key: value for key, value in labels.items() if value is not None} | made
    if "work" in given:
        amount, unit = given["work"].split(":", 1) if isinstance(given["work"], str) else given["work"]
        given["work"] = Work(amount=float(amount), unit=str(unit))
    if "table" in given:
        from gpureport.importers.labels import LabelTable

        given["table"] = LabelTable(Path(given["table"]))
    return Labels(**given)


def _check_keys(name: str, values: Mapping[str, Any], known: set[str]) -> None:
    """Refuse keys that mean nothing."""
    if unknown := [key for key in values if key not in known]:
        msg = f"{name} has no key {unknown[0]!r}; its keys are {', '.join(sorted(known))}"
        raise TypeError(msg)


def _fetch(path: str | Path) -> str | Path:
    """Return a path; of a URL of a bucket that of its local copy."""
    place = parse_place(path) if isinstance(path, str) and is_bucket_url(path) else path
    return fetch(place) if isinstance(place, RemotePath) else place


def _paths(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)

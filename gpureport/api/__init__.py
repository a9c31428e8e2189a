"""The Python API. Add the name of a new function to `gpureport/__init__.py` as well."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, overload

from gpureport import analysis
from gpureport.analysis.account import cost, selection
from gpureport.api.results import Analysis, Comparison, build_content
from gpureport.comparison import chain, factors
from gpureport.comparison.run import build_sampled_run
from gpureport.comparison.training import make_goals
from gpureport.errors import RenderError, SettingsError
from gpureport.importers.labels import LabelTable
from gpureport.importers.protocol import ReadOptions, Selection
from gpureport.importers.reading import Reading, find_runs
from gpureport.importers.runs import find_run_logs
from gpureport.importers.sources import Labels, find_tracker, find_training_logs, identify_training_logs
from gpureport.importers.tools.mapped import read_column_map
from gpureport.importers.tracker_series import TrackedReading
from gpureport.places import Place, fetch, is_bucket_url, parse_place
from gpureport.recording import Recording, Work, hold_rows
from gpureport.redaction import redact_extra_columns, use_own_secrets
from gpureport.report import render, write
from gpureport.settings import SECRETS, Settings, check_sections, read_own_secrets, read_settings

__all__ = ["Analysis", "Comparison", "Recording", "analyze", "compare", "read", "report"]
Run = Recording | Analysis  # analysed or not
Results = Run | Sequence[Run] | Comparison
Paths = str | Path | Sequence[str | Path]
Names = str | Sequence[str]
Stated = str | Path | Mapping[str, Any] | None  # settings


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
    """Return every run in a log, folder or tracker's store; simultaneous logs from one machine form one run.

    Args:
        source: a log, a folder with logs at any depth, `mlflow:STORE#RUN` or `neptune:PATH#RUN`. `source`, `host` and
            `training` may be URLs such as `s3://BUCKET/PATH`.
        host: CPU logs, or more GPU logs of the run, to join by time.
        training: logs of training metrics; by default, those in the folder `source`.
        labels: facts that the logs lack: `name`, `step`, `params` and `tags` (dicts), the total `work` as
            `"12000:steps"` or `(12000, "steps")`, and `table`, output of `sacct -P` with user, account, job and node.
        as_one_run: whether all logs in the folder belong to one run.
        tz: time zone of the log, such as `"Europe/Berlin"`, if the log has none.
        gpus: indices of the GPUs to keep; None keeps all.
        columns: query fields of a log without a header, in order: a list, or `"timestamp,index,utilization.gpu"`.
        interval: seconds between samples in a log without timestamps.
        gpus_per_tick: number of GPUs in a log without a column to tell them apart.
        column_map: TOML file that describes the columns of an unknown table.
        tracker: which runs in a tracker to read: `runs`, `experiment`, `project`, `filter`, `latest`, `children`,
            `stage`, `group`, `gpu_memory_total` (bytes), `throughput`, `require_hardware`. If some runs can be
            read, each of the others causes a `UserWarning`.
        mlflow_raw_times: whether MLflow's system metrics keep their logged times.

    Raises PlaceError if a bucket cannot be reached or denies access; SourceError if the source is missing or contains
    nothing usable; TypeError if a key of `labels` or `tracker` is unknown.
    """
    (source,), hosts, trained = map(_fetch, (source, host, training))
    mapping = read_column_map(Path(column_map)) if column_map else None
    names = columns.split(",") if isinstance(columns, str) else columns
    options = ReadOptions(
        tz=tz or (mapping.zone if mapping else None),
        gpus=tuple(sorted({gpus} if isinstance(gpus, int) else set(gpus))) if gpus is not None else None,
        columns=None if names is None else tuple(name.strip() for name in names),
        interval=interval,
        gpus_per_tick=gpus_per_tick,
        map=mapping,
        as_logged=mlflow_raw_times,
    )
    named = _read_labels(labels or {})
    tracked = _check_keys("tracker", tracker or {}, Selection)
    kind = "mapped" if mapping else "nvidia_smi" if columns is not None else None
    store = None if as_one_run or kind else find_tracker(str(source))
    if store is not None:
        wanted = tracked.get("runs", ())
        tracked["runs"] = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        chosen = store.runs(str(source), Selection(**tracked))
        readable = [run for run in chosen.runs if run.fault is None]
        for fault in (run.fault for run in chosen.runs if run.fault is not None):
            if not readable:
                raise fault
            warnings.warn(f"{fault}; reading the other runs", stacklevel=2)
        return [TrackedReading(chosen, run, options, named, strict=False).recording() for run in readable]
    runs = [find_run_logs([source], hosts, kind, options)] if as_one_run else find_runs(source, hosts, kind, options)
    beside = [identify_training_logs(trained)] * len(runs)
    if not (trained or as_one_run):
        beside = find_training_logs([(source, inputs) for inputs in runs])
    named = named.of_several() if len(runs) > 1 else named
    pairs = zip(runs, beside, strict=True)
    return [Reading(inputs, options, named, training=found).recording() for inputs, found in pairs]


def _fetch(given: Paths) -> list[str | Path]:
    paths = [given] if isinstance(given, str | Path) else given
    return [fetch(parse_place(path)) if isinstance(path, str) and is_bucket_url(path) else path for path in paths]


def _check_keys(name: str, values: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    known = {field.name for field in fields(kind)} - {"map"}
    if unknown := [key for key in values if key not in known]:
        raise TypeError(f"{name} has no key {unknown[0]!r}; its keys are {', '.join(sorted(known))}")
    return {key: value for key, value in values.items() if value is not None}


def _read_labels(labels: Mapping[str, Any]) -> Labels:
    given = _check_keys("labels", labels, Labels)
    for key in {"params", "tags"} & given.keys():
        given[key] = tuple((str(name), str(value)) for name, value in given[key].items())
    if "work" in given:
        amount, unit = given["work"].split(":", 1) if isinstance(given["work"], str) else given["work"]
        given["work"] = Work(amount=float(amount), unit=str(unit))
    if "table" in given:
        given["table"] = LabelTable(Path(given["table"]))
    return Labels(**given)


def analyze(recording: Recording, *, select: Names = (), ignore: Names = (), settings: Stated = None) -> Analysis:
    """Return the analysis of one run: findings, statistics, where the GPU time went, and what it cost.

    Args:
        recording: the run, as `read` returns it.
        select: kinds of findings to look for, such as `"idle_gap"`; all if empty.
        ignore: kinds to leave out.
        settings: a `gpureport.toml`, or its content as a dict (`{"rules": {"idle_gap": {...}}, "prices": {"gpu_hour":
            2.49, "currency": "EUR", "date": "2026-11-01"}}`). If None, the defaults apply and no file in the working
            directory is read. Secrets in `settings` are hidden from then on. A removed setting causes a `UserWarning`.

    Raises SettingsError if a kind or setting is unknown.
    """
    if isinstance(settings, Mapping):
        stated = check_sections(Settings(file="settings", content=dict(settings)))
    else:
        stated = Settings() if settings is None else read_settings(Path(settings))
    if stated.content.get(SECRETS):
        use_own_secrets(read_own_secrets(stated))
        # secrets are removed from rows in a file whenever the rows are read
        held = recording.rows
        rows = hold_rows(redact_extra_columns(held.table())) if held.in_memory else held
        recording = Recording(run=replace(recording.run), rows=rows, training=recording.training)
    rules = selection.apply_settings(analysis.RULES, stated)
    wanted, unwanted = ((given,) if isinstance(given, str) else given for given in (select, ignore))
    try:
        kinds = selection.select_kinds(rules, wanted, unwanted)
    except SettingsError as error:
        raise SettingsError(error.where.removeprefix("--"), error.what, error.hint, code=error.code) from error
    for sentence in selection.list_ignored_settings(analysis.RULES, stated):
        warnings.warn(sentence, stacklevel=2)
    found = selection.keep_kinds(analysis.analyze(recording, rules), kinds)
    found = replace(found, cost=cost.calculate_cost(found, cost.read_prices(stated)))
    return Analysis(**_read_fields(found), recording=recording, rules=rules, kinds=frozenset(kinds))


def _read_fields(result: Any) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}


def compare(
    runs: Sequence[Run] | Mapping[str, Run | Sequence[Run]],
    *,
    throughput: str | None = None,
    by: str = "step",
    better: Mapping[str, str] | None = None,
    target: str | None = None,
) -> Comparison:
    """Return a comparison of each step with the one before it, with intervals and verdicts.

    Args:
        runs: recordings or analyses in step order, or a dict of steps: `{"before": [run, run], "after":
            run}`. Runs with the same step label are repetitions; a run without a label is a separate step.
        throughput: training metric that counts the work done, whatever its name.
        by: how to group a list into steps, as for `--by`, such as `"param:batch_size"` or `"gpu,param:precision"`.
            Groups are sorted by value. With `"folder"`, groups are ordered by the numbers at the start of
            folder names or, failing that, by the start of their first runs.
        better: direction of training metrics whose names do not show it: `{"my_metric": "higher"}`, or `"lower"`.
        target: value for a training metric to reach, such as `"val_accuracy=0.78"`; the times to reach it are compared.

    Raises ValueError if there are fewer than two steps, or if `by`, `better` or `target` is malformed; SettingsError if
    a run lacks a param or tag in `by`, or its log is not in a folder that identifies its step.
    """
    grouping = factors.parse_factors(by)
    if isinstance(runs, Mapping):
        if by != "step":
            raise ValueError("a dict already names its steps; to use `by`, give a list of runs")
        given = [_label(run, label) for label, several in runs.items() for run in _analyse(several)]
    else:
        given = _analyse(runs)
        steps = factors.assign_steps([each.run for each in given], grouping)
        given = [given[place] if label is None else _label(given[place], label) for place, label in steps]
    studied = tuple(factor for factor in grouping if factor.kind not in factors.CHAIN_KINDS)
    sampled = [build_sampled_run(each.recording, each, throughput) for each in given]
    found = chain.compare(sampled, goals=make_goals(better or {}, target)) if sampled else None
    if found is None or len(found.steps) == 1:
        raise ValueError("a comparison needs at least two steps")
    return Comparison(**_read_fields(found), analyses=tuple(given), throughput=throughput, by=studied)


def _analyse(runs: Run | Sequence[Run]) -> list[Analysis]:
    several = [runs] if isinstance(runs, Recording | Analysis) else runs
    return [run if isinstance(run, Analysis) else analyze(run) for run in several]


def _label(found: Analysis, step: str) -> Analysis:
    labelled = replace(found.run, step=step)
    return replace(found, run=labelled, recording=replace(found.recording, run=labelled))


@overload
def report(results: Results, path: str | Path, *, title: str | None = None) -> Place: ...


@overload
def report(results: Results, *, format: str, title: str | None = None) -> str: ...


def report(
    results: Results, path: str | Path | None = None, *, format: str | None = None, title: str | None = None
) -> Place | str:
    """Write or return a report on one run, on several runs as steps, or on a comparison.

    Args:
        results: an analysis, several analyses in step order, or a comparison. A recording is analysed first.
        path: file to write, or URL of an object in a bucket; its suffix is html, pdf, md, json, txt, svg or png.
        format: format of the text to return instead of writing a file, such as `"md"`.
        title: title of the report; if None, the names of the runs.

    Raises PlaceError if the bucket cannot be reached or denies access; RenderError if the format is unknown or is not
    text, or if the file cannot be written; TypeError unless exactly one of `path` and `format` is given.
    """
    if (path is None) == (format is None):
        raise TypeError("give either a path to write to, or a format to return")
    content = build_content(results if isinstance(results, Comparison) else _analyse(results), title)
    if path is not None:
        write(content, path)
        return parse_place(path) if isinstance(path, str) else path
    try:
        return render(content, f".{format}".replace("..", ".")).decode()
    except UnicodeDecodeError as error:
        raise RenderError(str(format), "this is not a text format", "write it to a file", code="not_text") from error

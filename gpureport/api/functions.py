"""`gpureport.analyze`, `gpureport.compare` and `gpureport.report`."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, overload

from gpureport import analysis, settings
from gpureport.analysis.account import selection
from gpureport.analysis.account.cost import calculate_cost, read_prices
from gpureport.api.results import Analysis, Comparison, build_content
from gpureport.comparison import chain
from gpureport.comparison.factors import CHAIN_KINDS, assign_steps, parse_factors
from gpureport.comparison.run import build_sampled_run
from gpureport.comparison.training import make_goals
from gpureport.errors import RenderError, SettingsError
from gpureport.places import Place, parse_place
from gpureport.recording import Recording, hold_rows
from gpureport.redaction import redact_extra_columns, use_own_secrets
from gpureport.report.formats.output import render, write
from gpureport.settings.secret_settings import SECTION, read_own_secrets

Run = Recording | Analysis  # analysed or not


def analyze(
    recording: Recording,
    *,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    settings: str | Path | Mapping[str, Any] | None = None,
) -> Analysis:
    """Return all that can be said about one run: findings, statistics, where the GPU time went, what it cost.

    Args:
        recording: the run, as `read` returns it.
        select: kinds of findings to look for, such as `"idle_gap"`; all when empty.
        ignore: kinds not to look for.
        settings: a `gpureport.toml`, or its content as a dict: `{"rules": {"idle_gap": {...}}, "prices":
            {"gpu_hour": 2.49, "currency": "EUR", "date": "2026-11-01"}}`.
            Without it the defaults hold. Secrets that it names are replaced from then on. No file of the working
            directory is read.

    Raises:
        SettingsError: when a kind or a setting is unknown.

    Warns:
        UserWarning: of each setting that can no longer be set.
    """
    stated = _read_settings(settings)
    if stated.content.get(SECTION):
        use_own_secrets(read_own_secrets(stated))
        # rows that lie in a file lose secrets whenever they are read
        rows = recording.rows
        rows = hold_rows(redact_extra_columns(rows.table())) if rows.in_memory else rows
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
    found = replace(found, cost=calculate_cost(found, read_prices(stated)))
    return Analysis(**_fields(found), recording=recording, rules=rules, kinds=frozenset(kinds))


def _fields(result: Any) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}


def _read_settings(given: str | Path | Mapping[str, Any] | None) -> settings.Settings:
    if isinstance(given, Mapping):
        return settings.check_sections(settings.Settings(file="settings", content=dict(given)))
    return settings.Settings() if given is None else settings.read_settings(Path(given))


def compare(
    runs: Sequence[Run] | Mapping[str, Run | Sequence[Run]],
    *,
    throughput: str | None = None,
    by: str = "step",
    better: Mapping[str, str] | None = None,
    target: str | None = None,
) -> Comparison:
    """Return each step set against the one before it, with intervals and verdicts.

    Args:
        runs: recordings or analyses in the order of their steps, or a dict of steps: `{"before": [run, run], "after":
            run}`. In a list, runs with the same step label are repetitions of one step; a run without a label is a
            step of its own.
        throughput: training metric that counts the work done, whatever its name.
        by: what makes a step, as `--by` takes it: `"param:batch_size"`, `"gpu,param:precision"`. Groups stand in the
            order of their values; with `"folder"` steps stand by the numbers that their folders begin with, else by the
            start of their first runs. A dict names its steps itself.
        better: which way training metrics get better whose names do not say: `{"my_metric": "higher"}`, or `"lower"`.
        target: value a training metric is to reach, such as `"val_accuracy=0.78"`; the time until then is compared.

    Raises:
        ValueError: when there are fewer than two steps, `by` names no settings, or `better` or `target` says nothing.
        SettingsError: when a run lacks a param or tag of `by`, or its log lies in no folder that tells its step.
    """
    grouping = parse_factors(by)
    if isinstance(runs, Mapping):
        if by != "step":
            msg = "a dict names its steps itself: with by, give a list of runs"
            raise ValueError(msg)
        given = [_label(run, label) for label, several in runs.items() for run in _list(several)]
    else:
        given = [*map(_analyse, runs)]
        steps = assign_steps([each.run for each in given], grouping)
        given = [given[place] if label is None else _label(given[place], label) for place, label in steps]
    factors = tuple(factor for factor in grouping if factor.kind not in CHAIN_KINDS)
    goals = make_goals(better or {}, target)
    sampled = [build_sampled_run(each.recording, each, throughput) for each in given]
    found = chain.compare(sampled, goals=goals) if sampled else None
    if found is None or len(found.steps) == 1:
        msg = "a comparison needs at least two steps"
        raise ValueError(msg)
    return Comparison(**_fields(found), analyses=tuple(given), throughput=throughput, by=factors)


def _list(runs: Run | Sequence[Run]) -> Sequence[Run]:
    return [runs] if isinstance(runs, Recording | Analysis) else runs


def _analyse(run: Run) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


def _label(run: Run, step: str) -> Analysis:
    found = _analyse(run)
    labelled = replace(found.run, step=step)
    return replace(found, run=labelled, recording=replace(found.recording, run=labelled))


@overload
def report(results: Run | Sequence[Run] | Comparison, path: str | Path, *, title: str | None = None) -> Place: ...


@overload
def report(results: Run | Sequence[Run] | Comparison, *, format: str, title: str | None = None) -> str: ...


def report(
    results: Run | Sequence[Run] | Comparison,
    path: str | Path | None = None,
    *,
    format: str | None = None,
    title: str | None = None,
) -> Place | str:
    """Write the report of one run, of several as steps, or of a comparison.

    Args:
        results: an analysis, several in the order of their steps, or a comparison. A recording is analysed first.
        path: file to write, or URL of an object of a bucket. Its suffix names the format: html, pdf, md, json, txt, svg
            or png.
        format: format of the text to return, such as `"md"`, instead of a file.
        title: title of the report; the names of the runs when None.

    Returns:
        The path or URL of the file, or the text.

    Raises:
        PlaceError: when the bucket cannot be reached, or refuses.
        RenderError: when no format has this name, a format that is no text is to be returned, or the file cannot be
            written.
        TypeError: when neither `path` nor `format` is given, or both are.
    """
    if (path is None) == (format is None):
        msg = "give either a path to write to, or a format to return"
        raise TypeError(msg)
    content = build_content(results if isinstance(results, Comparison) else tuple(map(_analyse, _list(results))), title)
    if path is not None:
        write(content, path)
        return parse_place(path) if isinstance(path, str) else path
    try:
        return render(content, f".{format}".replace("..", ".")).decode()
    except UnicodeDecodeError as error:
        raise RenderError(str(format), "this format is not text", "write it to a file", code="not_text") from error

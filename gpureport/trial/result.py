"""The result of a trial: `decision.json`, and one screen that says which setting to use and why."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from gpureport.comparison.verdict import Verdict
from gpureport.number_format import format_duration, format_gpu_time
from gpureport.report.formats.terminal import write_blocks
from gpureport.report.model.blocks import Block
from gpureport.report.model.shapes import Fact, build_table
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.terminal_lines import Page
from gpureport.trial.decision import Decision, DecisionReason, Setting, SettingResult
from gpureport.trial.plan import Plan, label_setting

SCHEMA = "gpureport.decision/1"
DECISION_FILE, REPORT_FILE = "decision.json", "report.html"
_FAILED, _UNCLEAR = 1, 4
"""Exit codes. 0 means that a setting was chosen."""
FAILURES = {
    "out_of_memory": "out of memory",
    "failed": "failed",
    "killed": "killed by a signal",
    "not_measured": "could not be measured",
}
_HEADLINES = {
    None: "Use {chosen}.",
    DecisionReason.NO_CLEAR_BEST: "No clear best setting: {tied} cannot be told apart.",
    DecisionReason.BASE_ONLY: "Keep {chosen}: no other setting is left.",
    DecisionReason.ONLY_ONE_LEFT: "Use {chosen}: no other setting is left.",
    DecisionReason.ALL_FAILED: "Every setting failed.",
    DecisionReason.TOO_FEW_ROUNDS: "No clear best setting: too few rounds were finished to compare settings.",
    DecisionReason.QUALITY: "Every setting misses the target or lowers the quality of the result.",
}
_KEEP = "Keep {chosen}: it is better than every other setting."
_ENDS = {
    "finished": "",
    "one_left": "It ended early, because one setting was left.",
    "budget": "It ended early, because another run would exceed the budget; give a larger --budget to go on.",
}
_NOTES = {
    "assumes_equal_work": "Times are compared, so every run must do the same work.",
    "target_not_recorded": "Some runs did not log the metric of the target.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A decision with what its values are. `ended` says why the trial ended, `notes` what it assumes, as codes."""

    plan: Plan
    decision: Decision
    better: int
    metric: str
    unit: str
    ended: str
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        if self.decision.chosen is not None:
            return 0
        failed = self.decision.reason in {DecisionReason.ALL_FAILED, DecisionReason.QUALITY}
        return _FAILED if failed else _UNCLEAR


def list_measured(result: Result) -> dict[str, str]:
    """Return the folders of the runs that have a value, in the order of settings, with the labels of these."""
    runs = [run for run in result.decision.runs if run.value is not None]
    runs.sort(key=lambda run: (result.plan.settings.index(run.setting), run.round))
    return {run.folder: label_setting(run.setting) for run in runs}


def encode(result: Result) -> dict[str, Any]:
    """Return the content of `decision.json`. The folders of runs are relative to that of the trial."""
    found = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "decision"}
    names = ("tied", *(each.name for each in fields(result.decision)))
    decided = {name: getattr(result.decision, name) for name in names}
    return {"schema": SCHEMA, "exit_code": result.exit_code} | {
        name: _encode(value) for name, value in (decided | found).items()
    }


def _encode(value: Any) -> Any:
    if isinstance(value, Verdict):
        return value.code
    if isinstance(value, float):
        return round(value, 6) if isfinite(value) else None
    if is_dataclass(value):
        said = {each.name: _encode(getattr(value, each.name)) for each in fields(value)}
        return said | ({"folder": "/".join(Path(said["folder"]).parts[-2:])} if "folder" in said else {})
    if isinstance(value, tuple):
        is_setting = bool(value) and all(isinstance(each, tuple) and isinstance(each[0], str) for each in value)
        return dict(value) if is_setting else [_encode(each) for each in value]
    return value


def render_text(result: Result, folder: Path, page: Page) -> str:
    return write_blocks(_list_blocks(result, folder), page)


def describe(result: Result) -> str:
    """Return the headline."""
    found = result.decision
    template = _HEADLINES[found.reason] if found.reason or found.chosen != found.base else _KEEP
    tied = display.join_words([*map(label_setting, found.tied)])
    return template.format(chosen=label_setting(found.chosen or ()), tied=tied)


def _list_blocks(result: Result, folder: Path) -> Iterator[Block]:
    found = result.decision
    yield Block(title=describe(result), level=3)
    columns = ("Setting", "Runs", "Time per run" if result.unit == "s" else "Speed", "Change", "Verdict")
    known = {each.setting: each for each in found.settings}
    results = [
        known.get(setting) or SettingResult(setting=setting, rounds=0, value=None) for setting in result.plan.settings
    ]
    rows = [_list_cells(each, found.base, result.unit) for each in results]
    note = "Change is against the first setting, which is in use today, with its interval."
    yield Block(table=build_table(columns, rows, note, in_words=("Change", "Verdict")))
    yield Block(facts=[*_list_facts(result, folder)])


def _list_cells(each: SettingResult, base: Setting, unit: str) -> list[str]:
    change = ""
    if each.change is not None and each.interval is not None:
        ends = format_percent_range([1 + end for end in each.interval])
        change = f"{format_percent_change(1 + each.change)} ({ends})"
    words = "in use today" if each.setting == base else each.verdict.short if each.verdict else "not compared"
    words = FAILURES.get(each.failure or "", "lower quality" if each.quality_fell else words)
    left = f", left after round {each.dropped_after}" if each.dropped_after else ""
    value = display.quantity(each.value, unit)
    return [label_setting(each.setting), str(each.rounds), value, change, words + left]


def _list_facts(result: Result, folder: Path) -> Iterator[Fact]:
    found = result.decision
    if found.margin and found.chosen:
        ends = format_percent_range([1 + end for end in found.margin.interval])
        size = format_percent_change(1 + found.margin.change)
        yield Fact(name="Margin", text=f"{size} ({ends}) against {label_setting(found.margin.over)}, the next best.")
    seconds = sum(run.seconds for run in found.runs)
    spent = f", {format_gpu_time(found.gpu_seconds)}" if found.gpu_seconds else ""
    cost = f"{display.plural(len(found.runs), 'run')}, {format_duration(seconds)}{spent}."
    yield Fact(name="Trial", text=display.join(cost, _ENDS[result.ended], by=" "))
    if found.saving and found.saving.gpu_seconds_per_run and found.saving.payback_seconds:
        text = f"{format_gpu_time(found.saving.gpu_seconds_per_run)} per run. "
        earned = f"{display.plural(found.saving.payback_runs or 0, 'run')}"
        long = format_duration(found.saving.payback_seconds)
        yield Fact(name="Saves", text=f"{text}The trial is earned back after {earned} ({long}).")
    yield from (Fact(name="Note", text=_NOTES[code]) for code in result.notes)
    files = [str(folder / name) for name in (DECISION_FILE, REPORT_FILE) if (folder / name).exists()]
    yield Fact(name="Files", text=", ".join(files))

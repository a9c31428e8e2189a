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
from gpureport.trial.decision import Decision, DecisionReason, SettingResult
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


def list_measured(decision: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the folders of the runs that have a value, with the labels of their settings, the best setting last."""
    order = sorted((each["setting"] for each in decision["settings"]), key=lambda each: each == decision["best"])
    runs = [run for run in decision["runs"] if run["value"] is not None]
    runs.sort(key=lambda run: (order.index(run["setting"]), run["round"]))
    return {str(folder / run["folder"]): label_setting(run["setting"].items()) for run in runs}


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


def describe(decision: dict[str, Any]) -> str:
    """Return the headline."""
    chosen, reason = decision["chosen"] or {}, decision["reason"]
    template = _HEADLINES[reason] if reason or chosen != decision["base"] else _KEEP
    tied = display.join_words([label_setting(each.items()) for each in decision["tied"]])
    return template.format(chosen=label_setting(chosen.items()), tied=tied)


def _list_blocks(result: Result, folder: Path) -> Iterator[Block]:
    yield Block(title=describe(encode(result)), level=3)
    columns = ("Setting", "Runs", "Time per run" if result.unit == "s" else "Speed", "Change", "Verdict")
    known, base = {each.setting: each for each in result.decision.settings}, result.decision.base
    results = [known.get(setting) or SettingResult(setting=setting, rounds=0) for setting in result.plan.settings]
    rows = [list_cells(_encode(each), result.unit, is_base=each.setting == base) for each in results]
    note = "Change is against the first setting, which is in use today, with its interval."
    yield Block(table=build_table(columns, rows, note, in_words=("Change", "Verdict")))
    yield Block(facts=[*_list_facts(result, folder)])


def list_cells(each: dict[str, Any], unit: str, *, is_base: bool) -> list[str]:
    change = ""
    if each["interval"]:
        ends = format_percent_range([1 + end for end in each["interval"]])
        change = f"{format_percent_change(1 + each['change'])} ({ends})"
    words = "in use today" if is_base else (each["verdict"] or "not compared").replace("_", " ")
    words = FAILURES.get(each["failure"], "lower quality" if each["quality_fell"] else words)
    left = f", left after round {each['dropped_after']}" if each["dropped_after"] else ""
    value = display.quantity(each["value"], unit)
    return [label_setting(each["setting"].items()), str(each["rounds"]), value, change, words + left]


def _list_facts(result: Result, folder: Path) -> Iterator[Fact]:
    found = result.decision
    if found.margin and found.chosen:
        ends = format_percent_range([1 + end for end in found.margin.interval])
        size = format_percent_change(1 + found.margin.change)
        yield Fact(name="Margin", text=f"{size} ({ends}) against {label_setting(found.margin.over)}, the next best.")
    spent = f", {format_gpu_time(found.gpu_seconds)}" if found.gpu_seconds else ""
    seconds = format_duration(sum(run.seconds for run in found.runs))
    cost = f"{display.plural(len(found.runs), 'run')}, {seconds}{spent}."
    yield Fact(name="Trial", text=display.join(cost, _ENDS[result.ended], by=" "))
    if (saved := found.saving) and saved.gpu_seconds_per_run and saved.payback_seconds:
        runs, long = display.plural(saved.payback_runs or 0, "run"), format_duration(saved.payback_seconds)
        text = f"{format_gpu_time(saved.gpu_seconds_per_run)} per run. The trial is earned back after {runs} ({long})."
        yield Fact(name="Saves", text=text)
    yield from (Fact(name="Note", text=_NOTES[code]) for code in result.notes)
    files = [str(folder / name) for name in (DECISION_FILE, REPORT_FILE) if (folder / name).exists()]
    yield Fact(name="Files", text=", ".join(files))

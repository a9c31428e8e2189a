"""The result of a trial: one screen that says which setting to use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpureport.number_format import format_duration, format_gpu_time, format_number
from gpureport.report.formats.terminal import write_blocks
from gpureport.report.model.blocks import Block
from gpureport.report.model.shapes import Fact, build_table
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.terminal_lines import Page
from gpureport.trial.plan import WORDS, label_setting

DECISION_FILE, REPORT_FILE = "decision.json", "report.html"


def list_measured(decision: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the folders of runs with a value, and the labels of their settings, the best setting last."""
    # no run has a value if the work is unknown
    unclear = "not_measured" if decision["reason"] == "work_unclear" else ""
    order = sorted((each["setting"] for each in decision["settings"]), key=lambda each: each == decision["best"])
    runs = [run for run in decision["runs"] if run["value"] is not None or run["failure"] == unclear]
    runs.sort(key=lambda run: (order.index(run["setting"]), run["round"]))
    return {str(folder / run["folder"]): label_setting(run["setting"].items()) for run in runs}


def render_text(decision: dict[str, Any], folder: Path, page: Page) -> str:
    unit, base = decision["unit"], decision["base"]
    columns = ("Setting", "Runs", "Time per run" if unit == "s" else "Speed", "Change", "Verdict")
    rows = [list_cells(each, unit, is_base=each["setting"] == base) for each in decision["settings"]]
    table = build_table(columns, rows, WORDS["screen"]["note"], in_words=("Change", "Verdict"))
    facts = [Fact(name=name, text=text) for name, text in _list_facts(decision, folder)]
    return write_blocks([Block(title=write_headline(decision), level=3), Block(table=table), Block(facts=facts)], page)


def write_headline(decision: dict[str, Any]) -> str:
    chosen = decision["chosen"] or {}
    said = decision["reason"] or ("keep" if chosen == decision["base"] else "use")
    tied = display.join_words([label_setting(each.items()) for each in decision["tied"]])
    return str(WORDS["headline"][said].format(chosen=label_setting(chosen.items()), tied=tied))


def list_cells(each: dict[str, Any], unit: str, *, is_base: bool) -> list[str]:
    verdict = "quality too low" if each["quality"] else "in use today" if is_base else each["verdict"]
    left = f", dropped after round {each['dropped_after']}" if each["dropped_after"] else ""
    words = (each["failure"] or verdict).replace("_", " ") + left
    change = _format_change(each) if each["interval"] else ""
    speed = display.quantity(each["value"], unit)
    return [label_setting(each["setting"].items()), str(each["rounds"]), speed, change, words]


def _format_change(each: dict[str, Any]) -> str:
    ends = format_percent_range([1 + end for end in each["interval"]])
    return f"{format_percent_change(1 + each['change'])} ({ends})"


def _list_facts(decision: dict[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    said, runs, spent, saved = WORDS["screen"], decision["runs"], decision["gpu_seconds"], decision["saving"]
    if (margin := decision["margin"]) and decision["chosen"]:
        over = label_setting(margin["over"].items())
        yield "Margin", said["margin"].format(change=_format_change(margin), over=over)
    cost = [display.plural(len(runs), "run"), format_duration(sum(run["seconds"] for run in runs))]
    text = ", ".join([*cost, format_gpu_time(spent)] if spent else cost)
    yield "Trial", display.join(f"{text}.", WORDS["ended"][decision["ended"]], by=" ")
    if saved and saved["payback_seconds"]:
        runs, time = display.plural(saved["payback_runs"], "run"), format_duration(saved["payback_seconds"])
        yield "Saves", said["saves"].format(saved=format_gpu_time(saved["gpu_seconds_per_run"]), runs=runs, time=time)
    for each in decision["settings"]:
        if quality := each["quality"]:
            metric, *values = quality.values()
            value, before, target = (display.or_not_recorded(one, format_number) for one in values)
            other = f"{before} before (means of the last values)" if quality["target"] is None else f"target {target}"
            yield "Quality", f"{label_setting(each['setting'].items())}: {metric} {value}, {other}."
    yield from (("Note", said[code]) for code in decision["notes"])
    yield "Files", ", ".join(str(file) for file in (folder / DECISION_FILE, folder / REPORT_FILE) if file.exists())

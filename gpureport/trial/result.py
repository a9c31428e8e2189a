"""The result of a trial: one screen that says which setting to use, and a store that knows slower settings."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from gpureport.number_format import format_duration, format_gpu_time, format_number
from gpureport.parsing import parse_json
from gpureport.places import Place
from gpureport.recorder.job_params import find_settings
from gpureport.report.formats.terminal import write_blocks
from gpureport.report.model.blocks import Block
from gpureport.report.model.shapes import Fact, build_table
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.terminal_lines import Page
from gpureport.store.atomic_writes import raise_store_errors, write_bytes
from gpureport.trial.plan import WORDS, fill_command, label_setting, split_command

DECISION_FILE, REPORT_FILE = "decision.json", "report.html"
_FOLDER = "decisions"
_Known = tuple[int, list[str], set[tuple[str, str]], str]
"""When a setting was tried, its script and options, and what was found if another setting is faster."""


def list_measured(decision: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the folders of the runs that have a value, with the labels of their settings, the best setting last."""
    order = sorted((each["setting"] for each in decision["settings"]), key=lambda each: each == decision["best"])
    runs = [run for run in decision["runs"] if run["value"] is not None]
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
            other = f"{before} before" if quality["target"] is None else f"target {target}"
            yield "Quality", f"{label_setting(each['setting'].items())}: {metric} {value}, {other}."
    yield from (("Note", said[code]) for code in decision["notes"])
    yield "Files", ", ".join(str(file) for file in (folder / DECISION_FILE, folder / REPORT_FILE) if file.exists())


def keep_decision(store: Place, decision: dict[str, Any], trial: str, *, named: bool) -> None:
    """Write a decision to a store that exists or that the user named, in place of an earlier one of the same trial."""
    digest = sha256(json.dumps(decision["plan"]).encode()).hexdigest()[:16]
    text = json.dumps({**decision, "trial": trial}, indent=1, ensure_ascii=False)
    with raise_store_errors(store):
        if named or store.is_dir():
            (store / _FOLDER).mkdir(parents=True, exist_ok=True)
            write_bytes(store / _FOLDER / f"{digest}.json", f"{text}\n".encode(), store / _FOLDER)


def find_slower(store: Place, runs: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """Yield a sentence for each slower setting, with the runs that have it. Runs are given by name and tags."""
    known: list[_Known] = []
    for path in (store / _FOLDER).glob("[!.]*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError):
            known += _read_decision(parse_json(path.read_bytes()))
    # the newest comparison of a setting counts
    known.sort(key=lambda each: each[0], reverse=True)
    names: dict[str, list[str]] = {}
    for name, tags in runs if known else ():
        script, given = _split(split_command(tags))
        found = (text for _, of, options, text in known if of == script and options <= given.items())
        names.setdefault(next(found, ""), []).append(name)
    for text, own in names.items():
        more = f" and {len(own) - 1:,} more" if len(own) > 1 else ""
        yield from [f"{own[0]}{more}: {text} (slower_setting)."] if text else []


def _read_decision(content: Any) -> Iterator[_Known]:
    command, best, speeds = content["plan"]["command"], tuple((content["best"] or {}).items()), {}
    for each in content["settings"]:
        # changes are relative to the base
        change = 0.0 if each["setting"] == content["base"] else each["change"]
        if not (change is None or each["failure"] or each["quality_fell"]):
            speeds[tuple(each["setting"].items())] = (1 + change) ** content["better"]
    for own, speed in speeds.items():
        gain, text = speeds.get(best, 0.0) / speed - 1, ""
        if gain > 0 and dict(own) not in content["tied"]:
            mine, other = (label_setting([pair for pair in a if pair not in b]) for a, b in ((own, best), (best, own)))
            text = f"runs with {mine}; trial {content['trial']} found {other} {gain:.0%} faster"
        words = fill_command(command, own)
        options = {(name, value) for at, name, value in find_settings(words) if words[at] != command[at]}
        yield content["runs"][-1]["started"], _split(words)[0], options, text


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command without its options, from its Python file on if it has one, and the options."""
    options = [*find_settings(words)]
    values = {at for at, *_ in options}
    left = [word for at, word in enumerate(words) if at not in values and not word.startswith("-")]
    first = next((at for at, word in enumerate(left) if word.endswith(".py")), 0)
    return [PurePath(word).name for word in left[first:]], {name: value for _, name, value in options}

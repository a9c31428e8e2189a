"""What could not be judged, and how much could: an empty list of findings must never read as good health."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from gpureport.metrics import BY_NAME
from gpureport.report.model.report_content import Judgement, NotJudgedLine
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms

_COMMAND = re.compile(r"nvidia-smi --query-gpu=([\w.,]+)([^;]*)")
_KEYS = {"timestamp", "index"}
_QUANTITY = re.compile(r"\d[\d.]*\s(?:(?:h|min)(?:\s\d+\s(?:min|s))?|s|ms|%|samples?)(?!\w)")
_AMOUNT = re.compile(r"(\d[\d.]*)\s(\w+|%)")
_TIMES = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001}


def judged_kinds(runs: Sequence[ReportRun], asked: Collection[str]) -> tuple[int, int, int]:
    """Return how many kinds were judged, how many could not be, and of the former how many in some repetitions only.

    A step tells of a kind what those of its repetitions tell in which it could be judged.

    Args:
        runs: the runs.
        asked: the kinds that were to be judged.
    """
    steps: dict[str, list[set[str]]] = {}
    for run in runs:
        steps.setdefault(run.step, []).append({entry.kind for entry in run.analysis.not_judged})
    missing = set().union(*(set.intersection(*each) for each in steps.values()))
    partly = set().union(*(kinds for each in steps.values() for kinds in each)) - missing
    return len(set(asked) - missing), len(missing), len(partly)


def judgement(runs: Sequence[ReportRun], asked: Collection[str]) -> Judgement:
    """Return what could not be judged, one line for each reason."""
    judged, missing, partly = judged_kinds(runs, asked)
    limits = dict.fromkeys(display.clean_sentence(limit) for run in runs for limit in run.analysis.limits)
    lines = tuple(_lines(runs))
    command = _command([line.recording for line in lines], _recorded(runs))
    if command:
        lines = tuple(replace(line, recording=fields_only(line.recording)) for line in lines)
    return Judgement(sentence=_sentence(judged, missing, partly), lines=lines, limits=tuple(limits), command=command)


def _recorded(runs: Sequence[ReportRun]) -> list[str]:
    """Return the fields whose values the runs hold, so that who records what is missing does not lose them."""
    metrics = (summary.metric for run in runs for one in run.analysis.statistics for summary in one.metrics)
    known = (BY_NAME[name] for name in dict.fromkeys(metrics) if name in BY_NAME)
    fields = (field for metric in known if metric.queried for field in metric.recorded_by.split(","))
    return list(dict.fromkeys(fields))


def _command(recordings: Sequence[str], recorded: Sequence[str]) -> str:
    """Return one command for what is recorded and all that is named; empty where several are not named."""
    found = dict.fromkeys(match.groups() for text in recordings for match in _COMMAND.finditer(text))
    named = (name for names, _ in found for name in names.split(","))
    fields = dict.fromkeys([*sorted(_KEYS, reverse=True), *recorded, *named])
    return f"nvidia-smi --query-gpu={','.join(fields)}{next(iter(found))[1]}" if len(found) > 1 else ""


def fields_only(recording: str) -> str:
    """Return what to record with each nvidia-smi command as the fields it is about: one command logs them all."""
    return _COMMAND.sub(_fields, recording)


def _fields(command: re.Match[str]) -> str:
    names = [name for name in command[1].split(",") if name not in _KEYS]
    return f"nvidia-smi: {', '.join(names)}"


def _sentence(judged: int, missing: int, partly: int) -> str:
    some = f", {partly} of them not in every repetition" if partly else ""
    if missing == 0:
        kinds = f"Every one of the {judged} kinds of loss and fault that were looked for"
        return f"{kinds} could be judged with this data{some}."
    if judged == 0:
        return "Nothing could be judged with this data."
    return f"{display.plural(judged, 'kind')} could be judged{some}; {missing} could not be judged, or only in part."


def _lines(runs: Sequence[ReportRun]) -> Iterator[NotJudgedLine]:
    gathered: dict[tuple[str, str], dict[str, list[str]]] = {}
    for run in runs:
        for entry in run.analysis.not_judged:
            kinds = gathered.setdefault(
                (terms.humanize(display.clean_sentence(entry.reason)), display.clean(entry.recording)), {}
            )
            kinds.setdefault(terms.kind_title(display.clean(entry.kind)), []).append(
                _place(run, entry.device, len(runs))
            )
    alike: dict[tuple[str, str, tuple[str, ...]], list[tuple[str, list[str]]]] = {}
    for (reason, recording), kinds in gathered.items():
        places = dict.fromkeys(place for found in kinds.values() for place in found)
        alike.setdefault((_QUANTITY.sub("#", reason), recording, tuple(kinds)), []).append((reason, list(places)))
    labels = {run.label for run in runs}
    for (_, recording, together), told in alike.items():
        places = dict.fromkeys(place for _, found in told for place in found)
        where = "" if set(places) == labels else _places(list(places))
        yield NotJudgedLine(
            kinds=together, where=where, reason=_reason([said for said, _ in told]), recording=recording
        )


def _reason(reasons: Sequence[str]) -> str:
    """Return reasons that differ in their quantities as one that holds the least and the most of each."""
    ranges = iter([_range(found) for found in zip(*map(_QUANTITY.findall, reasons), strict=True)])
    return _QUANTITY.sub(lambda _: next(ranges), reasons[0])


def _range(quantities: Sequence[str]) -> str:
    least, most = min(quantities, key=_size), max(quantities, key=_size)
    if least == most:
        return least
    return f"{least.removesuffix('samples').rstrip()} to {most}" if most.endswith("samples") else f"{least} to {most}"


def _size(quantity: str) -> float:
    """Return a quantity as a number that orders it among others of its kind."""
    return sum(float(number) * _TIMES.get(unit, 1.0) for number, unit in _AMOUNT.findall(quantity))


def _place(run: ReportRun, device: str | None, runs: int) -> str:
    where = [run.label] if runs > 1 else []
    return ": ".join([*where, *([run.device(device)] if device else [])])


def _places(places: list[str]) -> str:
    shown = [place for place in places if place]
    few = 4
    return ", ".join(shown) if len(shown) <= few else f"{', '.join(shown[:few])} and {len(shown) - few} more"

"""What could not be judged, and how much could: an empty list of findings must never read as good health."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.rules import missing_metrics
from gpureport.findings import Amount, NotJudged
from gpureport.metrics import BY_NAME
from gpureport.report.model.report_content import Judgement, NotJudgedLine
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms
from gpureport.report.wording.grouping import group_holders

_FEW = 4
"""Places that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """Why kinds could not be judged, whatever amounts the reason names, and what to record."""

    reason: str
    recording: str
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Case:
    """A kind that could not be judged on a device of a run, or on the whole run."""

    run: ReportRun
    entry: NotJudged


def judged_kinds(runs: Sequence[ReportRun], asked: Collection[str]) -> tuple[int, int, int]:
    """Return how many kinds were judged, how many could not be, and of the former how many in some repetitions only.

    A kind counts as judged in a step if at least one repetition could judge it.

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
    command = _command(runs)
    return Judgement(
        sentence=_sentence(judged, missing, partly),
        lines=tuple(_lines(runs, in_fields=bool(command))),
        limits=tuple(limits),
        command=command,
    )


def _recorded(runs: Sequence[ReportRun]) -> list[str]:
    """Return the fields whose values the runs hold, so that who records what is missing does not lose them."""
    metrics = (summary.metric for run in runs for one in run.analysis.statistics for summary in one.metrics)
    known = (BY_NAME[name] for name in dict.fromkeys(metrics) if name in BY_NAME)
    fields = (field for metric in known if metric.queried for field in metric.recorded_by.split(","))
    return list(dict.fromkeys(fields))


def _command(runs: Sequence[ReportRun]) -> str:
    """Return one command for what is recorded and all that is missing; empty where no two commands differ."""
    missing = (missing_metrics.queried_fields(entry.metrics) for run in runs for entry in run.analysis.not_judged)
    different = dict.fromkeys(tuple(fields) for fields in missing if fields)
    if len(different) <= 1:
        return ""
    return missing_metrics.query_command([*_recorded(runs), *(field for fields in different for field in fields)])


def _sentence(judged: int, missing: int, partly: int) -> str:
    some = f", {partly} of them not in every repetition" if partly else ""
    if missing == 0:
        kinds = f"Every one of the {judged} kinds of loss and fault that were looked for"
        return f"{kinds} could be judged with this data{some}."
    if judged == 0:
        return "Nothing could be judged with this data."
    return f"{display.plural(judged, 'kind')} could be judged{some}; {missing} could not be judged, or only in part."


def _lines(runs: Sequence[ReportRun], *, in_fields: bool) -> Iterator[NotJudgedLine]:
    """Yield a line for each cause and each set of kinds that it leaves open.

    Args:
        runs: the runs.
        in_fields: whether fields stand in the place of the command that logs them.
    """
    cases = [_Case(run, entry) for run in runs for entry in run.analysis.not_judged]
    by_sentence = group_holders(((_cause(case.entry), case.entry.reason), case) for case in cases)
    by_kinds = group_holders(
        ((cause, tuple(dict.fromkeys(case.entry.kind for case in held))), case)
        for (cause, _), held in by_sentence.items()
        for case in held
    )
    labels = {run.label for run in runs}
    for (cause, kinds), held in by_kinds.items():
        reason = _with_ranges(cause.reason, [case.entry.amounts for case in held])
        places = list(dict.fromkeys(_place(case.run, case.entry.device, len(runs)) for case in held))
        yield NotJudgedLine(
            kinds=tuple(terms.kind_title(display.clean(kind)) for kind in kinds),
            where="" if set(places) == labels else _places(places),
            reason=terms.humanize(display.clean_sentence(reason)),
            recording=display.clean(
                missing_metrics.recorded_fields(cause.metrics) if in_fields and cause.metrics else cause.recording
            ),
        )


def _cause(entry: NotJudged) -> _Cause:
    return _Cause(reason=entry.template or entry.reason, recording=entry.recording, metrics=entry.metrics)


def _with_ranges(template: str, amounts: Sequence[tuple[Amount, ...]]) -> str:
    """Return a reason with the least and the most of each amount that it names."""
    return template.format(*map(_range, zip(*amounts, strict=True))) if amounts[0] else template


def _range(amounts: Sequence[Amount]) -> str:
    least, most = (pick(amounts, key=lambda amount: amount.value) for pick in (min, max))
    return least.words if least.words == most.words else f"{least.text} to {most.words}"


def _place(run: ReportRun, device: str | None, runs: int) -> str:
    where = [run.label] if runs > 1 else []
    return ": ".join([*where, *([run.device(device)] if device else [])])


def _places(places: list[str]) -> str:
    shown = [place for place in places if place]
    more = len(shown) - _FEW
    return ", ".join(shown) if more <= 0 else f"{', '.join(shown[:_FEW])} and {more} more"

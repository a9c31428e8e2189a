"""What to do next: up to three actions, ranked by severity, gain and confidence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import fsum

from gpureport.analysis.advice.choose import choose_workers_trial, gather_facts
from gpureport.analysis.doubts import COARSE_SECONDS, SLOW_CLOCK
from gpureport.analysis.job.events import REQUESTS
from gpureport.analysis.results import NOTABLE, Analysis
from gpureport.analysis.rulebook import ACTIONS, KINDS
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS, SHORTEST_SECONDS, recorded_seconds
from gpureport.comparison.gains import count_samples, is_recording_too_short
from gpureport.comparison.verdict import Verdict, estimate_runs_for_interval, measure_run_interval
from gpureport.findings import Confidence, Finding, Severity
from gpureport.names import group_pairs
from gpureport.recording_advice import RECORD
from gpureport.report.model.head import Action
from gpureport.report.model.report_content import FindingRow
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import found as words
from gpureport.report.sections.findings.found import SEVERITIES, Found, gather
from gpureport.report.sections.head.loss_sentence import describe_computing, is_low_mid_job
from gpureport.report.sections.head.recording_doubts import UNTIMED, list_rejections
from gpureport.report.wording import display, terms

_MOST = 3
_NOTABLE_SAVING, _MOST_OF_IT = 0.01, 0.5
"""Shares of GPU time: smallest saving to show, and highest share of waiting at which a larger batch may help."""
_SHORT_START, _SHORT_RUN = 600.0, 300.0
"""Seconds below which start-up is overrepresented, or longer runs are advised."""
_MANY_CHECKS = 5  # Unassessed checks that call for a longer log.
_COARSE = 0.05  # Detectable relative change from which longer runs are advised.
# Suggested power limit: fraction of that drawn while slowed; rounding in watts.
_BELOW, _STEP_WATTS = 0.9, 5
_WEIGHTS = {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.8, Confidence.LOW: 0.5}
_TRAINED = {"tail_idle", "clocks_locked"}
"""Kinds that are normal if the GPU may serve requests."""
# kinds without an action if their severity is info
_NOTES = {"startup_idle", "tail_idle", "pcie_degraded", "log_gap"}
_EXPLAINED = {"waiting_for_input", "low_use", "hollow"}
_UNEXPLAINED = {"idle_gap", "periodic_stall", "low_util_cause_unknown"}
_BESIDE = "not shown beside other programs"
_OTHER_USE = "other use"  # has priority over unexplained low use
_CPU = "cpu_utilization_ratio"


def build_actions(
    runs: Sequence[ReportRun],
    rows: Sequence[FindingRow],
    comparison: Comparison,
    best: str | None = None,
    *,
    repeat: bool = True,
) -> tuple[Action, ...]:
    """Return actions for the `best` group or, without one, the last step."""
    step = next((run.step for run in runs if run.step == best), runs[-1].step)
    of_step = [run for run in runs if run.step == step]
    alone = []
    for row, each in zip(rows, gather(runs), strict=True):
        parts = [part for part in each.parts if part.run.step == step]
        if None in {part.root for part in parts}:
            shown = words.leave_out_occupied_gpus(Found(parts, several=each.several))
            alone.append((row, shown, len(parts) < len(each.parts)))
    others = [part for _, part, _ in alone]
    ranked = [((*key, is_old), each) for row, part, is_old in alone for key, each in _propose(row, part, others)]
    ranked += [((-SEVERITIES.index(Severity.WARNING), 0.0, False), each) for each in _try_workers(of_step, others)]
    proposed = _drop_repeated([action for _, action in sorted(ranked, key=lambda each: each[0])])
    asked = group_pairs(_list_measurements(comparison, of_step, others, repeat=repeat))
    first, measured, last = (asked.get(place, []) for place in range(3))
    return tuple(_drop_repeated([*first, *proposed[: _MOST - bool(measured)], *measured, *last])[:_MOST])


def _drop_repeated(actions: Sequence[Action]) -> list[Action]:
    titles = [each.title for each in actions]
    return [each for at, each in enumerate(actions) if each.title not in titles[:at]]


def _propose(row: FindingRow, found: Found, every: Sequence[Found]) -> Iterator[tuple[tuple[int, float], Action]]:
    kind, severity, advice = found.finding.kind, -SEVERITIES.index(found.severity), words.advise(found, every)
    # a larger batch would also wait for data
    waits = [each for each in every if _name_class(each) == "waiting_for_input" or each.finding.cause == _BESIDE]
    if (
        advice is None
        or (found.severity is Severity.INFO and kind in _NOTES)
        or (kind == "oversized_gpu" and words.has_alternative(found, every))
        or (kind == "mem_headroom" and any(each.share > _MOST_OF_IT for each in waits))
        or (kind in _TRAINED and _may_serve(every))
    ):
        return
    runs = found.runs.values()
    is_known = not advice.gain and not all(is_recording_too_short(run.analysis) for run in runs)
    saving = _measure_saving(found, every) if is_known else 0.0
    is_single = len(found.findings) == 1 and not found.several
    summary = terms.humanize(display.clean_sentence(found.finding.summary))
    own = summary if is_single else words.describe_finding(found)
    is_brief = kind == "startup_idle" and max(run.seconds for run in runs) < _SHORT_START
    of = "a run" if found.several else "" if found.has_one_gpu else "the GPU time"
    of = "a run this short" if is_brief else gpu_time.name_base(runs, of)
    saves = f"Saves up to {display.percent(saving)} of {of}" if saving >= _NOTABLE_SAVING else words.UNKNOWN_GAIN
    is_other = kind in _UNEXPLAINED and any((each.finding.cause or "").startswith(_OTHER_USE) for each in every)
    score = -1.0 if is_other else (saving or found.share) * _WEIGHTS[found.confidence]
    action = Action(
        title=advice.title,
        gain=advice.gain or saves,
        text=f"{own or row.summary} {advice.how}",
        certainty=f"Found with {row.confidence} confidence{f' in {row.runs}' if row.marks else ''}.",
        command=advice.command,
        finding=row.id,
    )
    yield (severity, -score), action
    drawn = [each.observed for each in found.list_evidence("gpu_power_watts", "mean while slowed")]
    if kind == "thermal_throttle" and drawn:
        watts = str(int(min(drawn) * _BELOW // _STEP_WATTS * _STEP_WATTS))
        cap = words.fill_advice(ACTIONS["cap"], found, drawn=display.power(min(drawn)), watts=watts)
        yield (severity, 1.0), replace(action, title=cap.title, gain=cap.gain, text=cap.how, command=cap.command)


def _may_serve(every: Iterable[Found]) -> bool:
    return any(each.finding.cause == REQUESTS for each in every)


def _name_class(found: Found) -> str:
    return KINDS[found.finding.kind].gpu_time_class if found.finding.kind in KINDS else ""


def _measure_saving(found: Found, every: Sequence[Found]) -> float:
    """Return the share of GPU time lost in all runs, or 0 if losses overlap."""
    losing = ((part.position, part.finding) for each in every if each is not found for part in each.parts)
    others = group_pairs((position, finding) for position, finding in losing if finding.lost_gpu_seconds)
    base = fsum(gpu_time.measure_base([run.analysis]) for run in found.runs.values())
    own = [part for part in found.parts if part.finding.lost_gpu_seconds]
    is_shared = any(_overlap(part.finding, other) for part in own for other in others.get(part.position, ()))
    return fsum(found.lost_by_run.values()) / base if base and not is_shared else 0.0


def _overlap(one: Finding, other: Finding) -> bool:
    if one.devices and other.devices and not {*one.devices} & {*other.devices}:
        return False
    pairs = list(product(one.intervals, other.intervals))
    return not pairs or any(mine.start < theirs.end and theirs.start < mine.end for mine, theirs in pairs)


def _try_workers(runs: Sequence[ReportRun], every: Sequence[Found]) -> Iterator[Action]:
    analyses = [run.analysis for run in runs]
    pauses = gpu_time.short_pauses_ratio(analyses)
    is_explained = any(each.key[0] == "workers_headroom" or _name_class(each) in _EXPLAINED for each in every)
    is_long = recorded_seconds(analyses) >= SHORTEST_REPETITION_SECONDS
    if pauses < NOTABLE or not is_long or is_explained or _may_serve(every):
        return
    paused = f"Short pauses took {display.percent(pauses)} of the observed time"
    what = describe_computing(analyses, mid_job=True) if is_low_mid_job(analyses) else paused
    last = analyses[-1]
    missing = {entry.kind for entry in last.not_judged}
    trial = choose_workers_trial(gather_facts(last.run, last.statistics, last.findings, missing))
    title, how, gain = ACTIONS["workers" if trial else "profile"]
    text = f"{what}; the log doesn't show why. {how.format(workers=trial.suggestion) if trial else how}"
    yield Action(title, words.UNKNOWN_GAIN if trial else gain, text, "No check found a cause.", is_trial=True)


def _list_measurements(
    comparison: Comparison, runs: Sequence[ReportRun], every: Sequence[Found], *, repeat: bool
) -> Iterator[tuple[int, Action]]:
    steps = comparison.steps
    lengths = [recorded_seconds(step.analyses) for step in steps]
    if len(steps) > 1 and min(lengths[0], lengths[-1]) < SHORTEST_REPETITION_SECONDS:
        least, enough = map(display.duration, (SHORTEST_REPETITION_SECONDS, SHORTEST_SECONDS))
        text = f"Only {display.duration_below(min(lengths), SHORTEST_REPETITION_SECONDS)} of the shortest step was "
        text += f"recorded. Each step needs {least}, and {enough} for small changes."
        yield 0, Action("Record every step for longer", "Allows a comparison", text, "Too short to compare.")
    if len(steps) > 1 and max(len(step.runs) for step in steps) == 1 and repeat:
        text = "With one run per step, a difference may be chance. Run each step two more times."
        yield 1, Action("Repeat each step", "Shows what is due to chance", text, "Even runs of the same job differ.")
    if any(UNTIMED in each for each in list_rejections([run.run for run in runs])):
        text = "SECONDS is the time between two rows of a GPU."
        yield 0, Action("Give --interval SECONDS", "Reads rows without timestamps", text, "Most rows lack a timestamp.")
    # a log without CPU utilisation cannot show what GPUs wait for
    unknown = any(each.finding.kind in _UNEXPLAINED and each.finding.cause in {None, "unknown"} for each in every)
    if unknown and not any(_CPU in run.recording.rows.schema.names for run in runs):
        title, how, gain, _ = ACTIONS["record"]
        yield 1, Action(title, gain, how, "The CPU was not recorded.", command=RECORD)
    yield from _list_recordings([run.analysis for run in runs], every)
    is_coarse = any((run.run.interval or 0.0) >= COARSE_SECONDS for run in runs)
    lacking = [[each for each in run.analysis.not_judged if each.needed_seconds and not is_coarse] for run in runs]
    count = min(len({each.kind for each in own}) for own in lacking)
    longest = max(run.seconds for run in runs)
    if count >= _MANY_CHECKS or (count and all(is_recording_too_short(run.analysis) for run in runs)):
        needs = (each.needed_seconds or 0.0 for own in lacking for each in own)
        needed = display.duration(max([SHORTEST_SECONDS, *needs]))
        said = display.duration(longest) if longest > 0 else "only one moment"
        text = f"The log covers {said}, too short for {display.plural(count, 'check')}."
        yield 1, Action(f"Record at least {needed}", "Allows more checks", text, "Many checks need a longer log.")
        return
    yield from ((1, each) for each in _measure_longer(comparison))
    is_unstated = any(step.work_unit is None and not any(run.exit_code for run in step.runs) for step in steps)
    if any(run.run.gpus for run in runs) and is_unstated:
        text = "Fair comparisons need the amount of work: add --work N:UNIT, such as --work 12000:batches."
        yield 2, Action("Specify the amount of work", "Shows cost per unit of work", text, "The work is not known.")


def _list_recordings(analyses: Sequence[Analysis], every: Sequence[Found]) -> Iterator[tuple[int, Action]]:
    apart = max(analysis.run.interval or 0.0 for analysis in analyses)
    place = int(any(found.severity is not Severity.INFO for found in every))
    if analyses[-1].run.gpus and not any(map(count_samples, analyses)):
        title, gain, why = "Record utilization.gpu", "Allows most checks", "Utilisation was not recorded."
        yield 0, Action(title, gain, "It shows when each GPU works.", why, command=RECORD)
    elif any(each.code == SLOW_CLOCK for analysis in analyses for each in analysis.not_judged):
        title, text = "Record clocks_event_reasons.active and enforced.power.limit", "They show what lowers the clock."
        yield place, Action(title, "Shows the cause", text, "The log does not show it.", command=RECORD)
    if apart >= COARSE_SECONDS:
        title, text = "Record one sample per second", f"Samples {display.duration(apart)} apart miss short pauses."
        yield place, Action(title, "Shows short pauses", text, "The log shows the interval.", command=RECORD)


def _measure_longer(comparison: Comparison) -> Iterator[Action]:
    pairs = ((comparison.judged(base.label, step.label), base, step) for base, step in pairwise(comparison.steps))
    known = [(delta, base, step) for delta, base, step in pairs if delta and delta.before]
    judged = [((each[0].detectable_difference or 0.0) / (each[0].before or 1.0), *each) for each in known]
    unclear = [each for each in judged if each[1].verdict is Verdict.NO_CLEAR_CHANGE and each[0] >= _COARSE]
    if not unclear or max(len(step.runs) for step in comparison.steps) == 1:
        return
    share, delta, base, step = max(unclear, key=lambda each: each[0])
    is_short = max(run.analysis.seconds for each in comparison.steps for run in each.runs) < _SHORT_RUN
    is_repeated, with_base = min(delta.runs) > 1, delta.runs[0] <= delta.runs[1]
    now = delta.interval and measure_run_interval(delta, delta.interval, base, step, repeat_base=with_base)
    runs = now and estimate_runs_for_interval(now, now.half_width * _COARSE / share, on_both=is_repeated)
    wish = f"More runs would show smaller changes, but no practical number would show one of {_COARSE:.0%}."
    if runs:
        of = "each step" if is_repeated else display.clean((base if with_base else step).label)
        wish = f"To show a change of {_COARSE:.0%}, record {'longer runs or ' if is_short else ''}{runs} runs of {of}."
    text = f"{' and '.join(map(str, dict.fromkeys(delta.runs)))} runs{' this short' if is_short else ''} show only "
    text += f"changes above about {display.percent(share)}. {wish}"
    places = [at for at, each in enumerate(comparison.steps, 1) if each in [step for *_, step in unclear]]
    names = f"steps {display.join_words(list(map(str, places)))}" if len(places) > 1 else display.clean(delta.step)
    title = "Measure longer runs" if is_short else "Repeat each step more often"
    yield Action(title, f"May settle {names}", text, f"No clear change in {display.plural(len(unclear), 'step')}.")

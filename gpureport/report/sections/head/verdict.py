"""The result of a report: headline, lead, notes, and the four tiles of a single run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.analysis import phrases
from gpureport.analysis.doubts import COARSE_SECONDS, SLOW_CLOCK, SURE_READINGS
from gpureport.analysis.results import NOTABLE
from gpureport.comparison import gains
from gpureport.comparison import verdict as verdicts
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS, WORK_RATE, recorded_seconds
from gpureport.comparison.steps import Step, TrainingBasis
from gpureport.comparison.study import Study
from gpureport.findings import Check, CheckOutcome, Confidence
from gpureport.names import group_pairs
from gpureport.report.model.head import Action, Change, Tile, Verdict, VerdictCode
from gpureport.report.model.pictures import SignalHistory
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.found import Found, fill_words, find_words, find_worst, write_headline
from gpureport.report.sections.head import loss_sentence as losses
from gpureport.report.sections.head import recording_doubts as doubted
from gpureport.report.sections.signal_history import CLOCK, format_value
from gpureport.report.sections.steps import summary
from gpureport.report.sections.steps.figures import build_memory_tile, describe_unequal_work, warn_of_falls
from gpureport.report.sections.steps.study import describe_study
from gpureport.report.wording import display, terms, words
from gpureport.report.wording.display import clean, duration, lower_first, percent, raise_first
from gpureport.report.wording.reasons import SINGLE_RUN_SCATTER, describe_left_out, describe_reason

_LEAD, _DOUBTS = 3, 2  # most sentences in the lead, and most doubts in it
_RULES = 2  # Maximum number of named broken rules.
_LOST = 0.1  # A run that lost this share is not healthy.
_SLOWED = frozenset(("thermal_throttle", "hw_throttle"))
_TIMES = 2.0  # Larger speed-ups are given as multiples.
_HIDDEN = 1.1  # Ratio of the two gains from which training is mentioned.
# longest run in seconds, and least share, in which start-up hides a gain
_SHORT, _START_UP = 600.0, 0.2
_BRIEF = 60.0  # Seconds below which the headline gives the length.
_USE = ("GPU use", "{mean}", "{gpus}", "For {length}")
_CANNOT = "undetermined"
_NAMED = 3  # maximum number of named classes
_CLEAR = {VerdictCode.HEALTHY, VerdictCode.FEW_CHECKS, VerdictCode.SHORT_PAUSES, VerdictCode.PARTLY_OBSERVED}
_MEMORY_KINDS = frozenset(("mem_pressure", "mem_leak", "mem_headroom", "mem_prealloc"))


def build_verdict(  # noqa: PLR0913 - the inputs of a verdict
    comparison: Comparison,
    inputs: Sequence[ReportRun],
    findings: losses.Findings,
    study: Study | None = None,
    repetitions: str = "",
    *,
    checks: Sequence[Check] = (),
) -> Verdict:
    last, several, kind = comparison.steps[-1], len(comparison.steps) > 1, ""
    sentence, code, details = _describe_comparison(comparison, study, repetitions) if several else ("", None, ())
    if not sentence or code is None:
        of_last = inputs[len(inputs) - len(last.runs) :]
        reason = losses.explain_unknown_loss(last, findings)
        told = find_worst(of_last) if reason is None or reason[1] is VerdictCode.NO_UTILISATION else None
        if told is not None:
            sentence, code, kind = write_headline(told), VerdictCode.FINDING, told.finding.kind
        else:
            sentence, code = reason or _describe_without_finding(last, findings)
        length = duration(findings.seconds)
        if not findings.too_short and 0 < findings.seconds < _BRIEF and length not in sentence:
            sentence = f"Only {length} recorded: {lower_first(sentence)}"
        lead = _write_run_lead(code, told, of_last, findings)
        details = (*details, *(each for each in lead if each not in {"", sentence}))
        sentence = f"{clean(last.label)}: {lower_first(sentence)}" if several else sentence
    order = [*filter(None, [doubted.describe_recording_order(comparison.steps)])]
    found = doubted.describe_doubts(comparison)
    doubts = found or (tuple(order) if study is None else ())
    details = (*doubts[:_DOUBTS], *details, *(() if doubts else order))
    notes = _write_notes(comparison, (*details, *doubts, sentence), repetitions, too_short=findings.too_short)
    further = filter(None, [*(order if found else ()), *notes])
    broken, rules = [check for check in checks if check.outcome is CheckOutcome.BROKEN], list[str]()
    if broken:
        failed = f"{display.plural(len(broken), 'rule')} failed"
        named = (f"{clean(each.limit)} ({display.clean_sentence(each.observed)})" for each in broken[:_RULES])
        rules = [f"{failed}: {'; '.join(named)}."]
        if code in _CLEAR:
            sentence, code = f"{failed}; no check found a problem.", VerdictCode.RULES_FAILED
    place = next((place for place in range(len(details), 0, -1) if _count_sentences(details[:place]) <= _LEAD), 1)
    in_lead = min(len(doubts), _DOUBTS, place)
    return Verdict(
        sentence=sentence,
        details=(*details[:in_lead], *rules, *details[in_lead:place]),
        notes=(*doubts[in_lead:], *(text for text in details[place:] if text not in doubts), *further),
        doubts=in_lead,
        further_doubts=len(doubts) - in_lead,
        code=code,
        kind=kind,
    )


def _count_sentences(texts: Sequence[str]) -> int:
    return sum(text.count(". ") + 1 for text in texts)


def add_next_step(verdict: Verdict, actions: Sequence[Action]) -> Verdict:
    if not actions or not (actions[0].finding or actions[0].is_trial) or _count_sentences(verdict.details) >= _LEAD:
        return verdict
    start = "Could be tried" if verdict.code is VerdictCode.HEALTHY else "First"
    return replace(verdict, details=(*verdict.details, f"{start}: {lower_first(actions[0].title)}."))


def _describe_without_finding(step: Step, findings: losses.Findings) -> tuple[str, VerdictCode]:
    analyses = step.analyses
    held, lost = gpu_time.job_gpu_seconds(analyses), gpu_time.lost_ratios(analyses)
    unseen, pauses = gpu_time.unobserved_ratio(analyses), gpu_time.short_pauses_ratio(analyses)
    computing = losses.describe_computing(analyses)
    if not held or (not findings.judged and findings.missing):
        mean = f"{computing} on average; checks cannot use averages." if findings.is_mean and held else ""
        return mean or "Nothing could be assessed with this data.", VerdictCode.NOTHING_ASSESSED
    if losses.is_display_alone(analyses):
        return "No job is visible; a display may have used the GPU.", VerdictCode.CAUSE_UNKNOWN
    clocks = [each.amounts[0] for one in analyses for each in one.not_judged if each.code == SLOW_CLOCK]
    if (is_low := losses.is_low_mid_job(analyses)) or (clocks and sum(lost.values()) < _LOST):
        slow = "" if is_low else f"The busy GPU ran at {min(clocks)[1]} of its highest clock"
        slow = slow or losses.describe_computing(analyses, mid_job=True)
        return f"{slow}; the log doesn't show why.", VerdictCode.CAUSE_UNKNOWN
    if sum(lost.values()) >= _LOST:
        name, ratio = next(iter(lost.items()))
        loss = losses.name_loss(name, analyses)
        part = f": {loss} {percent(ratio)}" if len(lost) > 1 else f", all of it {loss}"
        return f"{percent(sum(lost.values()))} of the GPU time was lost{part}.", VerdictCode.LOST_TIME
    apart = max(analysis.run.interval or 0.0 for analysis in analyses)
    minor = len({found.kind for one in analyses for found in one.findings})
    clear = f"only {display.plural(minor, 'minor finding')}" if minor else "no problems found"
    said, code = "", VerdictCode.HEALTHY
    if any(run.exit_code for run in step.runs):
        said, code = ", but the job failed", VerdictCode.FEW_CHECKS
    elif unseen > gains.UNSEEN_RATIO:
        said = f", but {percent(unseen)} of the GPU time has no utilisation data"
        code = VerdictCode.PARTLY_OBSERVED
    elif apart >= COARSE_SECONDS:
        said, code = f", but samples {duration(apart)} apart miss short pauses", VerdictCode.FEW_CHECKS
    elif findings.missing > findings.judged or doubted.describe_data_waits(step.runs):
        said, code = f" in {display.plural(findings.judged, 'check')}", VerdictCode.FEW_CHECKS
        said += f"; {findings.missing} more could not be assessed" if findings.missing else ""
    elif pauses >= NOTABLE:
        said = f"; short pauses take {percent(pauses)} of the time"
        code = VerdictCode.SHORT_PAUSES
    if said:
        return f"{raise_first(clear)}{said}.", code
    return f"Healthy: {lower_first(computing)}; {clear}.", VerdictCode.HEALTHY


def _write_run_lead(
    code: VerdictCode, told: Found | None, runs: Sequence[ReportRun], findings: losses.Findings
) -> Iterator[str]:
    analyses = [run.analysis for run in runs]
    yield from list(doubted.list_rejections([analysis.run for analysis in analyses]))[:1]
    yield from map(doubted.describe_drivers, analyses)
    if findings.too_short or not gpu_time.job_gpu_seconds(analyses) or losses.is_display_alone(analyses):
        return
    lost = losses.describe_loss(analyses)
    if told is not None and told.finding.kind in _SLOWED and told.lost and told.share >= gains.NOTABLE_RATIO:
        whole = "" if told.is_plural or len(told.run.run.gpus) == 1 else duration(told.lost)
        whole = whole and f"{whole} of computing on {told.gpus}, "
        lost = f"That cost {whole}{percent(told.share)} of {gpu_time.name_base(told.runs.values(), 'all GPU time')}."
    elif told and not told.lost and lost and lower_first(terms.kind_title(told.finding.kind)) not in lost:
        lost = f"Separately, {lower_first(lost)}"
    is_one_class = len(gpu_time.lost_ratios(analyses)) == 1 and not gpu_time.is_mostly_unseen(analyses)
    if told is not None and len(runs) > 1 and lost:
        count = sum(any((f.kind, f.cause) == told.key for f in run.analysis.findings) for run in runs)
        yield f"Found in {count} of {len(runs)} runs; {lower_first(lost)}"
    elif code is not VerdictCode.LOST_TIME or not is_one_class or losses.is_partly_unseen(analyses):
        # otherwise the headline already says this
        yield lost
    if told is not None and told.finding.confidence is Confidence.LOW:
        # confidence may be low for other reasons, such as an unknown power limit
        longest = max((span.seconds for span in told.intervals), default=told.run.seconds)
        apart = told.run.run.interval or 0.0
        is_coarse = longest < SURE_READINGS * apart or apart >= COARSE_SECONDS
        why = f"Samples are {duration(apart)} apart, so confidence" if is_coarse else "Confidence"
        yield f"{why} in the headline is low."
    if code in {VerdictCode.HEALTHY, VerdictCode.SHORT_PAUSES}:
        count = findings.judged + findings.missing
        yield (
            f"{findings.missing} of {count} checks lack data." if findings.missing else f"All {count} checks were run."
        )


def _describe_comparison(
    comparison: Comparison, study: Study | None, repetitions: str
) -> tuple[str, VerdictCode | None, tuple[str, ...]]:
    if study is not None:
        sentence, code, details = describe_study(study, comparison)
        if sentence:
            return sentence, code, details
    steps = comparison.steps
    short = [step for step in steps if recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS]
    if short and (short[0] is steps[0] or short[-1] is steps[-1]):
        labels = words.list_labels([clean(each.label) for each in short])
        why = f"Less than 20{display.GAP}s of {labels} was recorded."
        fallen = summary.describe_quality_alone(comparison)
        if fallen:
            return fallen, VerdictCode.QUALITY_FELL, (why,)
        return "Too short to compare: record every step for longer.", VerdictCode.STEPS_TOO_SHORT, (why,)
    details = tuple(filter(None, _write_step_lead(comparison, repetitions)))
    return *summary.describe_steps(comparison), details


def _write_step_lead(comparison: Comparison, repetitions: str) -> Iterator[str]:
    yield warn_of_falls(comparison)
    yield describe_unequal_work(comparison)
    delta, left = summary.judge_ends(comparison), _describe_largest_loss(comparison.steps[-1])
    money = losses.describe_saving(comparison) or losses.explain_missing_cost(comparison)
    if delta is not None and delta.verdict is verdicts.Verdict.NOT_ENOUGH_DATA and delta.reason is not None:
        yield display.clean_sentence(describe_reason(delta.reason))
    if all(len(step.runs) == 1 for step in comparison.steps) or (
        delta is not None and delta.verdict is verdicts.Verdict.UNCONFIRMED
    ):
        single = [clean(step.label) for step in comparison.steps if len(step.runs) == 1]
        again = "" if summary.is_blocked(comparison) else "Repeat every step before you rely on this."
        if len(single) == 1 and len(comparison.steps) == 2:  # noqa: PLR2004 - a pair
            again = f"Only one run of “{single[0]}”: repeat it to confirm this. Rules about changes still apply: "
            again += f"{SINGLE_RUN_SCATTER}."
        yield from (money, repetitions or again, f"{left}." if left else "")
    else:
        sure = summary.describe_certainty(comparison)
        said = display.join(sure, lower_first(left) if sure else left)
        yield from (f"{said}." if said else "", money)
    yield _describe_training(comparison)


def _describe_largest_loss(step: Step) -> str:
    lost = gpu_time.lost_ratios(step.analyses)
    if not lost or recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS:
        return ""
    name, ratio = next(iter(lost.items()))
    if ratio < gains.NOTABLE_RATIO or gpu_time.is_mostly_unseen(step.analyses):
        return ""
    return f"Largest loss now: {losses.name_loss(name, step.analyses)}, {percent(ratio)} of the GPU time"


def _describe_training(comparison: Comparison) -> str:
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged_training(first.label, last.label)
    if delta is None or not delta.before or not delta.after or not delta.verdict.is_established:
        return ""
    ratio, rates = delta.after / delta.before, (first.value(WORK_RATE), last.value(WORK_RATE))
    whole = rates[1] / rates[0] if rates[0] and rates[1] else None
    if whole is None or not max(ratio / whole, whole / ratio) > _HIDDEN:
        return ""
    size = percent(abs(ratio - 1))
    gain = f"{ratio:.1f} times as fast" if ratio >= _TIMES else f"{size} {'faster' if ratio > 1 else 'slower'}"
    lost = gpu_time.lost_ratios(last.analyses)
    is_short = max(analysis.seconds for analysis in last.analyses) < _SHORT
    is_hidden = ratio > max(whole, 1.0) and is_short and lost.get("startup", 0.0) >= _START_UP
    is_steady = last.training_source is not None and last.training_source.basis is TrainingBasis.STEADY_PHASE
    without = ", without the wait for the first batch," if is_steady and is_short else ""
    return f"Training alone{without} is {gain}{'; start-up hides the gain in runs this short' if is_hidden else ''}."


def _write_notes(comparison: Comparison, lead: Sequence[str], repetitions: str, *, too_short: bool) -> Iterator[str]:
    final = comparison.steps[-1].analyses
    runs = [each.run for step in comparison.steps for each in step.analyses]
    left_out = [run for delta in comparison.deltas for run in delta.left_out]
    # do not mention the short steady state of a run that stopped early
    yield describe_left_out([*{run.run: run for run in sorted(left_out, key=lambda run: run.stopped)}.values()])
    if comparison.tested > 1:
        training = comparison.training_tested if comparison.training_tested > 1 else 0
        yield words.say("table.allowance", n=comparison.tested, training=training)
    yield from doubted.list_jobs(final)
    unseen = gpu_time.unobserved_ratio(final)
    # smaller shares are told with losses
    if not too_short and gains.MOST_UNSEEN_RATIO < unseen < 1 - gains.NEGLIGIBLE_RATIO:
        yield f"{percent(unseen)} of the GPU time has no utilisation data, so it cannot be assessed."
    yield from (line for line in doubted.list_rejections(runs) if line not in lead)
    yield repetitions if repetitions not in lead else ""


def build_tiles(
    comparison: Comparison, findings: losses.Findings, worst: Found | None = None, history: SignalHistory | None = None
) -> tuple[Tile, ...]:
    step = comparison.steps[-1]
    computing, lost = _build_use_tiles(step, findings)
    hottest, memory, energy = _build_hottest_tile(step), build_memory_tile(comparison), _build_energy_tile(step)
    if memory.value == display.NOT_RECORDED:
        # avoid two tiles without a value
        memory, energy = energy, lost
    if not any(analysis.run.gpus for analysis in step.analyses):
        return computing, hottest, memory
    # give no shares for a recording that is too short
    worst = None if findings.too_short else worst
    told = list(_list_finding_tiles(worst, history)) if worst is not None else []
    kind = worst.finding.kind if worst is not None else ""
    told = [hottest, *told] if kind == "thermal_throttle" else told
    if kind in _MEMORY_KINDS:
        first = [*told, memory, computing] if len(told) > 1 else [memory, computing, *told]
        return (*first[:2], lost, memory if memory not in first[:2] else hottest)
    if told:
        return (*[*told, computing][:2], lost, memory)
    is_lost = worst is not None or sum(gpu_time.lost_ratios(step.analyses).values()) >= _LOST
    middle = (lost, hottest) if is_lost and lost.value != _CANNOT else (hottest, energy)
    return computing, *middle, memory


def _list_finding_tiles(found: Found, history: SignalHistory | None) -> Iterator[Tile]:
    for tile in find_words(found, "tiles", []):
        label, value, unit, context = (fill_words(found, text, now=True) for text in (_USE if tile == "@use" else tile))
        if unit[:1] == "~":
            value, _, own = value.rpartition(display.GAP)
            unit = own + unit[1:]
        # capitalise GPU names at the start of a line
        unit, context = (raise_first(text) if text == found.gpus else text for text in (unit, context))
        if value:
            yield Tile(label=label, value=value, unit=unit, context=context)
    kind = found.finding.kind
    panels = history.panels if history else ()
    clock = next((panel for panel in panels if panel.quantity == CLOCK.label), None)
    usual, meanwhile = (clock.usual or 0.0, clock.meanwhile) if clock else (0.0, None)
    gpu, fall = history.gpu if history else "", fill_words(found, "{fall}")
    if kind in {"thermal_throttle", "hw_throttle"} and fall and meanwhile is not None and meanwhile < usual:
        yield Tile(
            label=f"Clock of {gpu} while {'hot' if kind == 'thermal_throttle' else 'slowed'}",
            before=format_value(CLOCK, usual, bare=True),
            value=format_value(CLOCK, meanwhile, bare=True),
            unit=CLOCK.unit,
            change=Change(text=f"\N{MINUS SIGN}{fall}", arrow="down"),
            context=fill_words(found, "For {length}", now=True),
        )


def _explain_absence(step: Step, findings: losses.Findings) -> tuple[str, str]:
    if not any(analysis.run.gpus for analysis in step.analyses):
        return display.NOT_RECORDED, "No GPU was recorded"
    if losses.is_display_alone(step.analyses):
        return _CANNOT, "No job is visible"
    found = [each.metric("gpu_utilization_ratio") for analysis in step.analyses for each in analysis.statistics]
    uses = [each.mean for each in found if each]
    # job statistics are imported as two samples, at start and end
    if uses and (findings.samples == 1 or (findings.samples == 2 and findings.too_short)):  # noqa: PLR2004 - two
        when, show = "At that moment" if findings.samples == 1 else "Too short; on average", "{:.0%}".format
        told = display.format_range(uses, show) if len(uses) > _NAMED else ", ".join(map(show, uses))
        return _CANNOT, f"{when} {told}"
    if losses.explain_unknown_loss(step, findings):
        return _CANNOT, "The recording is too short" if findings.too_short else "No utilisation was recorded"
    is_mixed = not gpu_time.job_gpu_seconds(step.analyses)
    return (_CANNOT, "Rows of several GPUs may be mixed") if is_mixed else ("", "")


def _build_use_tiles(step: Step, findings: losses.Findings) -> tuple[Tile, Tile]:
    labels = ("GPU time computing", "GPU time lost")
    analyses = step.analyses
    absent, why = _explain_absence(step, findings)
    if absent:
        return Tile(label=labels[0], value=absent, context=why), Tile(label=labels[1], value=absent, context=why)
    shares = gpu_time.lost_ratios(analyses)
    unknown = losses.explain_lower_bound(analyses)
    computing = gpu_time.sum_classes(analyses).get("computing", 0.0) / gpu_time.measure_base(analyses)
    lost = sum(shares.values())
    unit = f"of {gpu_time.format_base(analyses)}"
    is_unknown = bool(unknown) and lost < gains.NOTABLE_RATIO
    share = "not known" if is_unknown else f"{'at least ' if unknown else ''}{percent(lost)}"
    seen = 1 - gpu_time.unobserved_ratio(analyses)
    known = f"{percent(computing / seen)} of the time recorded" if losses.is_partly_unseen(analyses) else ""
    first = Tile(label=labels[0], value=percent(computing), context=f"{known or raise_first(unit)}; lost {share}")
    if not any(map(gains.count_samples, analyses)):
        first = replace(first, value=_CANNOT, context="No utilisation was recorded")
    if is_unknown:
        return first, Tile(label=labels[1], value="not known", context=raise_first(unknown))
    titles = terms.CLASSES | {"throttled": losses.name_loss("throttled", analyses)}
    named = ((lower_first(titles[name]), ratio) for name, ratio in shares.items() if ratio >= gains.NEGLIGIBLE_RATIO)
    parts = [f"{name} {percent(ratio)}" for name, ratio in named]
    context = raise_first(", ".join(parts[:_NAMED])) or "Nothing lost"
    return first, Tile(label=labels[1], value=percent(lost), unit=unit, context=context)


def _build_hottest_tile(step: Step) -> Tile:
    label, known = "Hottest GPU", [each for analysis in step.analyses for each in analysis.statistics]
    held = ((each.device, each.metric("gpu_temperature_celsius")) for each in known)
    hottest = group_pairs((device, summary.max) for device, summary in held if summary)
    peaks = {device: max(each) for device, each in hottest.items()}
    if not peaks:
        return Tile(label=label, value=display.NOT_RECORDED, context="Temperature was not recorded")
    device = max(peaks, key=lambda each: peaks[each])
    name, value = phrases.gpu_name(device), display.temperature(peaks.pop(device))
    if not peaks:
        return Tile(label=label, value=value, context=name)
    low, high = (display.temperature(pick(peaks.values())) for pick in (min, max))
    span = low if low == high else f"{low.removesuffix(f'{display.GAP}°C')} to {high}"
    return Tile(label=label, value=value, unit=name, context=f"Others {span}")


def _build_energy_tile(step: Step) -> Tile:
    joules = step.value("energy_joules")
    if joules is not None:
        value, _, unit = display.energy(joules).partition(display.GAP)
        return Tile(label="Energy", value=value, unit=unit, context="GPUs only")
    known = [each for analysis in step.analyses for each in analysis.statistics]
    reasons = {
        "Implausible power was left out": any(each.power_doubt for each in known),
        "Too few power samples": any(each.metric("gpu_power_watts") for each in known),
        "Only instant power was recorded": any(each.metric("gpu_power_instant_watts") for each in known),
    }
    why = next((text for text, holds in reasons.items() if holds), "")
    return Tile(label="Energy", value=_CANNOT if why else display.NOT_RECORDED, context=why or "Power was not recorded")

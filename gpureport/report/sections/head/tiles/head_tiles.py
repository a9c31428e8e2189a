"""The four figures at the head of a report: of steps from the first to the last, of one run its worst fact first."""

from collections.abc import Sequence

from gpureport.analysis import phrases
from gpureport.analysis.results import Analysis
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison
from gpureport.comparison.steps import Step
from gpureport.report.model.head import Tile
from gpureport.report.model.pictures import SignalHistory
from gpureport.report.runs import gpu_time
from gpureport.report.sections.findings.found import Found
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss, name_loss
from gpureport.report.sections.head.tiles.finding_tiles import list_finding_tiles
from gpureport.report.sections.head.tiles.memory_tile import build_memory_tile
from gpureport.report.sections.steps.tiles import build_step_tiles
from gpureport.report.wording import display, terms

_CANNOT, _NO_POWER = "cannot be told", "Power was not recorded"
_NAMED = 3
"""Most classes of lost time that are named."""
_HIGH_LOSS = 0.1
"""Share of GPU time from which a loss has a tile even where no finding explains it."""
_TEMPERATURE = "gpu_temperature_celsius"
_MEMORY_KINDS = frozenset(("mem_pressure", "mem_leak", "mem_headroom", "mem_prealloc"))


def build_tiles(
    comparison: Comparison,
    findings: Findings,
    worst: Found | None = None,
    history: SignalHistory | None = None,
) -> tuple[Tile, ...]:
    """Return four figures; three of a recording without a GPU.

    Args:
        comparison: the steps; one for a single run.
        findings: those of the last step.
        worst: the findings that the headline tells of; None where all is well.
        history: the picture of the GPU that they are about; None where there is none.
    """
    if len(comparison.steps) > 1:
        return build_step_tiles(comparison)
    step = comparison.steps[-1]
    computing, lost = _build_computing_tile(step, findings), _build_lost_tile(step, findings)
    hottest, memory, energy = _build_hottest_tile(step), build_memory_tile(comparison), _build_energy_tile(step)
    if memory.value == display.NOT_RECORDED:
        # nothing is said twice
        memory, energy = energy, lost
    if not any(analysis.run.gpus for analysis in step.analyses):
        return computing, hottest, memory
    # shares of a recording too short to assess are no key figures
    if findings.too_short:
        worst = None
    told = list(list_finding_tiles(worst, history)) if worst is not None else []
    kind = worst.finding.kind if worst is not None else ""
    if kind == "thermal_throttle":
        told = [hottest, *told]
    if kind in _MEMORY_KINDS:
        first = [*told, memory, computing] if len(told) > 1 else [memory, computing, *told]
        return (*first[:2], lost, memory if memory not in first[:2] else hottest)
    if told:
        return (*[*told, computing][:2], lost, memory)
    held, wasted = gpu_time.job_gpu_seconds(step.analyses), gpu_time.lost_seconds_by_class(step.analyses)
    if worst is not None or (held and sum(wasted.values()) / held >= _HIGH_LOSS):
        return computing, lost, hottest, memory
    return computing, hottest, energy, memory


def _explain_absence(step: Step, findings: Findings) -> tuple[str, str]:
    """Return what stands for a figure of GPU time, and why; empty where it can be told."""
    if not any(analysis.run.gpus for analysis in step.analyses):
        return display.NOT_RECORDED, "No GPU was recorded"
    found = [each.metric("gpu_utilization_ratio") for analysis in step.analyses for each in analysis.statistics]
    uses = [f"{each.mean:.0%}" for each in found if each]
    told = f"{', '.join(uses[:_NAMED])}{', ...' if len(uses) > _NAMED else ''}"
    # statistics of a job are a mean at its start and at its end
    if uses and (findings.samples == 1 or (findings.samples == 2 and findings.too_short)):  # noqa: PLR2004
        return _CANNOT, f"{'At that moment' if findings.samples == 1 else 'Too short; in the mean'} {told}"
    if explain_unknown_loss(step, findings):
        return _CANNOT, "The recording is too short" if findings.too_short else "No utilisation was recorded"
    if not gpu_time.job_gpu_seconds(step.analyses):
        return _CANNOT, "Rows of several GPUs may be mixed"
    return "", ""


def _build_computing_tile(step: Step, findings: Findings) -> Tile:
    label, (absent, why) = "GPU time computing", _explain_absence(step, findings)
    if absent:
        return Tile(label=label, value=absent, context=why)
    held = gpu_time.job_gpu_seconds(step.analyses)
    seconds = gpu_time.seconds_by_class(time for analysis in step.analyses for time in analysis.gpu_time)
    lost = sum(gpu_time.lost_seconds_by_class(step.analyses).values())
    whole = gpu_time.format_held(held, len(step.analyses))
    share = display.percent(lost / held)
    if gains.measure_excessive_short_pauses(seconds) is not None:
        share = f"at least {share}" if lost / held >= gains.NOTABLE_RATIO else "not known"
    computing, unseen = seconds.get("computing", 0.0), gpu_time.unobserved_ratio(step.analyses)
    base = f"Of {whole}"
    if 1 > unseen > gains.UNSEEN_RATIO:
        base = f"{display.percent(computing / held / (1 - unseen))} of the time recorded"
    return Tile(label=label, value=display.percent(computing / held), context=f"{base}; lost {share}")


def _build_lost_tile(step: Step, findings: Findings) -> Tile:
    label, (absent, why) = "GPU time lost", _explain_absence(step, findings)
    if absent:
        return Tile(label=label, value=absent, context=why)
    held, lost = gpu_time.job_gpu_seconds(step.analyses), gpu_time.lost_seconds_by_class(step.analyses)
    pauses = gpu_time.excessive_short_pauses(step.analyses)
    if pauses is not None and sum(lost.values()) / held < gains.NOTABLE_RATIO:
        return Tile(label=label, value="not known", context=f"Short pauses took {display.percent(pauses)}")
    if not lost and gpu_time.is_lower_bound(step.analyses):
        return Tile(label=label, value="not known", context="Some was lost to slowed clocks")
    unseen = gpu_time.unobserved_ratio(step.analyses)
    is_partly_seen = unseen > gains.MOST_UNSEEN_RATIO
    base = held * (1 - unseen) if is_partly_seen else held
    named = [name for name in lost if lost[name] / base >= gains.NEGLIGIBLE_RATIO][:_NAMED]
    texts = {name: display.lower_first(terms.CLASSES[name]) for name in named if name != "throttled"}
    parts = [
        f"{texts.get(name) or name_loss(name, step.analyses)} {display.percent(lost[name] / base)}" for name in named
    ]
    return Tile(
        label=label,
        value=display.percent(sum(lost.values()) / base),
        unit=f"of {gpu_time.format_held(base, len(step.analyses))}{' observed' if is_partly_seen else ''}",
        context=phrases.capitalize(", ".join(parts)) or "Nothing lost",
    )


def _build_hottest_tile(step: Step) -> Tile:
    label, found = "Hottest GPU", _list_peaks(step.analyses)
    if not found:
        return Tile(label=label, value=display.NOT_RECORDED, context="Temperature was not recorded")
    device, celsius = max(found, key=lambda each: each[1])
    others = sorted(each for gpu, each in found if gpu != device)
    name = phrases.gpu_name(device)
    if not others:
        return Tile(label=label, value=display.temperature(celsius), context=name)
    low, high = display.temperature(others[0]), display.temperature(others[-1])
    span = low if low == high else f"{low.removesuffix(f'{display.GAP}°C')} to {high}"
    return Tile(label=label, value=display.temperature(celsius), unit=name, context=f"Others {span}")


def _list_peaks(analyses: Sequence[Analysis]) -> list[tuple[str, float]]:
    peaks: dict[str, float] = {}
    for each in (each for analysis in analyses for each in analysis.statistics):
        if (summary := each.metric(_TEMPERATURE)) is not None:
            peaks[each.device] = max(peaks.get(each.device, summary.max), summary.max)
    return list(peaks.items())


def _build_energy_tile(step: Step) -> Tile:
    joules = step.value("energy_joules")
    if joules is None:
        why = _explain_no_energy(step.analyses)
        return Tile(label="Energy", value=_CANNOT if why else display.NOT_RECORDED, context=why or _NO_POWER)
    value, _, unit = display.energy(joules).partition(display.GAP)
    return Tile(label="Energy", value=value, unit=unit, context="GPUs only")


def _explain_no_energy(analyses: Sequence[Analysis]) -> str:
    """Return why power that was recorded gives no energy; empty where none was recorded."""
    known = [each for analysis in analyses for each in analysis.statistics]
    reasons = {
        "Power cannot be right: left out": any(each.power_doubt for each in known),
        "Too few samples of power": any(each.metric("gpu_power_watts") for each in known),
        "Only instant power was recorded": any(each.metric("gpu_power_instant_watts") for each in known),
    }
    return next((why for why, holds in reasons.items() if holds), "")

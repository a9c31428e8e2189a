"""The four figures at the head of a report on one run, its worst fact first; and the peak memory, of steps too."""

from collections.abc import Iterator

from gpureport.analysis import phrases
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import SAME_MEMORY
from gpureport.comparison.steps import Step
from gpureport.report.model.head import Change, Tile
from gpureport.report.model.pictures import SignalHistory
from gpureport.report.runs import gpu_time
from gpureport.report.sections.findings.found import Found, find_words, tell
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss, name_loss
from gpureport.report.sections.pictures.signal_history import CLOCK, format_value
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import build_plain_change
from gpureport.report.wording.scales import split_common_unit

_USE = ("GPU use", "{mean}", "{gpus}", "For {length}")
_CANNOT = "cannot be told"
_NAMED = 3  # most classes of lost time that are named
# share of GPU time from which a loss has a tile even where no finding explains it
_HIGH_LOSS = 0.1
_MEMORY_KINDS = frozenset(("mem_pressure", "mem_leak", "mem_headroom", "mem_prealloc"))
_MEMORY, _PEAK, _GIB = "gpu_memory_used_bytes", "Peak memory", f"{display.GAP}GiB"


def build_tiles(
    comparison: Comparison, findings: Findings, worst: Found | None = None, history: SignalHistory | None = None
) -> tuple[Tile, ...]:
    """Return four figures, of a recording without a GPU three: first of `worst`, which the headline tells of.

    `history` is the picture of the GPU that the worst findings are about.
    """
    step = comparison.steps[-1]
    computing, lost = _build_use_tiles(step, findings)
    hottest, memory, energy = _build_hottest_tile(step), build_memory_tile(comparison), _build_energy_tile(step)
    if memory.value == display.NOT_RECORDED:
        # nothing is said twice
        memory, energy = energy, lost
    if not any(analysis.run.gpus for analysis in step.analyses):
        return computing, hottest, memory
    # shares of a recording too short to assess are no key figures
    worst = None if findings.too_short else worst
    told = list(_list_finding_tiles(worst, history)) if worst is not None else []
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


def _list_finding_tiles(found: Found, history: SignalHistory | None) -> Iterator[Tile]:
    """Yield the worst fact of a finding and its effect, where evidence or pictures hold them; at most two."""
    for words in find_words(found, "tiles", []):
        label, value, unit, context = (tell(found, text, now=True) for text in (_USE if words == "@use" else words))
        if unit[:1] == "~":
            value, _, own = value.rpartition(display.GAP)
            unit = own + unit[1:]
        # the name of the GPUs has a capital, as it begins a line
        unit, context = (display.raise_first(text) if text == found.gpus else text for text in (unit, context))
        if value:
            yield Tile(label=label, value=value, unit=unit, context=context)
    kind, panels = found.finding.kind, {panel.quantity: panel for panel in (history.panels if history else ())}
    clock = panels.get(CLOCK.label)
    usual, meanwhile = (clock.usual or 0.0, clock.meanwhile) if clock else (0.0, None)
    gpu, fall = history.gpu if history else "", tell(found, "{fall}")
    if kind in {"thermal_throttle", "hw_throttle"} and fall and meanwhile is not None and meanwhile < usual:
        yield Tile(
            label=f"Clock of {gpu} while {'hot' if kind == 'thermal_throttle' else 'slowed'}",
            before=format_value(CLOCK, usual, bare=True),
            value=format_value(CLOCK, meanwhile, bare=True),
            unit=CLOCK.unit,
            change=Change(text=f"\N{MINUS SIGN}{fall}", arrow="down"),
            context=tell(found, "For {length}", now=True),
        )


def _explain_absence(step: Step, findings: Findings) -> tuple[str, str]:
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


def _build_use_tiles(step: Step, findings: Findings) -> tuple[Tile, Tile]:
    labels, analyses = ("GPU time computing", "GPU time lost"), step.analyses
    absent, why = _explain_absence(step, findings)
    if absent:
        first, second = (Tile(label=label, value=absent, context=why) for label in labels)
        return first, second
    held, unseen = gpu_time.job_gpu_seconds(analyses), gpu_time.unobserved_ratio(analyses)
    seconds = gpu_time.seconds_by_class(time for analysis in analyses for time in analysis.gpu_time)
    by_class, pauses = gpu_time.lost_seconds_by_class(analyses), gpu_time.excessive_short_pauses(analyses)
    computing, lost = seconds.get("computing", 0.0) / held, sum(by_class.values()) / held
    share = display.percent(lost)
    if pauses is not None:
        share = f"at least {share}" if lost >= gains.NOTABLE_RATIO else "not known"
    base = f"Of {gpu_time.format_held(held, len(analyses))}"
    if 1 > unseen > gains.UNSEEN_RATIO:
        base = f"{display.percent(computing / (1 - unseen))} of the time recorded"
    first = Tile(label=labels[0], value=display.percent(computing), context=f"{base}; lost {share}")
    value, unit = "not known", ""
    if pauses is not None and lost < gains.NOTABLE_RATIO:
        context = f"Short pauses took {display.percent(pauses)}"
    elif not by_class and gpu_time.is_lower_bound(analyses):
        context = "Some was lost to slowed clocks"
    else:
        is_partly_seen = unseen > gains.MOST_UNSEEN_RATIO
        seen = held * (1 - unseen) if is_partly_seen else held
        parts = []
        for name in [name for name in by_class if by_class[name] / seen >= gains.NEGLIGIBLE_RATIO][:_NAMED]:
            loss = name_loss(name, analyses) if name == "throttled" else display.lower_first(terms.CLASSES[name])
            parts.append(f"{loss} {display.percent(by_class[name] / seen)}")
        value, context = display.percent(sum(by_class.values()) / seen), display.raise_first(", ".join(parts))
        unit = f"of {gpu_time.format_held(seen, len(analyses))}{' observed' if is_partly_seen else ''}"
    return first, Tile(label=labels[1], value=value, unit=unit, context=context or "Nothing lost")


def _build_hottest_tile(step: Step) -> Tile:
    label, peaks = "Hottest GPU", dict[str, float]()
    for each in (each for analysis in step.analyses for each in analysis.statistics):
        if (summary := each.metric("gpu_temperature_celsius")) is not None:
            peaks[each.device] = max(peaks.get(each.device, summary.max), summary.max)
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
    value, why = _CANNOT, "Only instant power was recorded"
    if any(each.power_doubt for each in known):
        why = "Power cannot be right: left out"
    elif any(each.metric("gpu_power_watts") for each in known):
        why = "Too few samples of power"
    elif not any(each.metric("gpu_power_instant_watts") for each in known):
        value, why = display.NOT_RECORDED, "Power was not recorded"
    return Tile(label="Energy", value=value, context=why)


def build_memory_tile(comparison: Comparison) -> Tile:
    first, last = comparison.steps[0], comparison.steps[-1]
    peak = last.value(_MEMORY)
    before = None if first is last else first.value(_MEMORY)
    if peak is None:
        return Tile(label=_PEAK, value=display.NOT_RECORDED, context="Memory was not recorded")
    (shown, value), unit = split_common_unit(["" if each is None else display.memory(each) for each in (before, peak)])
    change, context = build_plain_change(before, peak), _describe_installed(last, peak)
    return Tile(label=_PEAK, before=shown, value=value, unit=unit, change=change, context=context)


def _describe_installed(step: Step, peak: float) -> str:
    """Return how much memory a GPU has, and how much of it was never used: of what a job can get where that is less.

    A total that a tracker's share of memory tells differs from GPU to GPU by a little: these are of one size.
    """
    totals, reserved, is_shared = list[int | None](), set[float](), False
    for analysis in step.analyses:
        found = {each.device: each.metric("gpu_memory_reserved_bytes") for each in analysis.statistics}
        for gpu in analysis.run.gpus:
            logged, total = found.get(gpu.id), gpu.memory_total_bytes
            kept = logged.max if logged and gpu.memory_reserved_bytes is None else gpu.memory_reserved_bytes
            totals.append(total)
            reserved.add(kept if kept and total and kept < total else 0.0)
            is_shared |= bool(gpu.mig)
    known = [total for total in totals if total]
    if not known or len(known) < len(totals):
        return "Installed memory not recorded"
    total, kept = min(known), reserved.pop() if len(reserved) == 1 else 0.0
    if max(known) > SAME_MEMORY * total:
        return "GPUs of several sizes"
    if is_shared:
        return f"Of {display.memory(total)}, in MIG instances"
    if kept:
        left, installed = (display.memory(each).removesuffix(_GIB) for each in (max(0.0, total - kept - peak), total))
        return f"{left} of {display.memory(total - kept)} usable left; {installed} installed"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"

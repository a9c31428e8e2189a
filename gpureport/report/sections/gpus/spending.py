"""Energy, money and carbon of each run, or how to state a price."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.analysis.account.cost import OPTION, Prices, calculate_cost
from gpureport.analysis.results import LOST_CLASSES, Analysis, Cost, DeviceStatistics, GpuPrice
from gpureport.recording import Recording
from gpureport.report.model.report_content import RunFacts
from gpureport.report.model.shapes import Fact
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

UNPRICED = f"no price is stated: give {OPTION} PRICE, or [prices] in gpureport.toml"
_HOUR = 3600
_IDLE = " (idle gaps, idle samples outside the job, and unused GPUs)"
_NEARLY_ALL = 0.995
"""Share of the time below which an energy says what part of it it covers."""


def apply_gpu_hour_price(
    runs: Sequence[tuple[Recording, Analysis]], gpu_hour_price: float | None
) -> list[tuple[Recording, Analysis]]:
    """Return the runs with their cost at one price, where they have none of their own."""
    if gpu_hour_price is None:
        return list(runs)
    prices = Prices().with_overrides(gpu_hour_price, None)
    return [
        (recording, replace(analysis, cost=analysis.cost or calculate_cost(analysis, prices)))
        for recording, analysis in runs
    ]


def build_spending(runs: Sequence[ReportRun]) -> tuple[RunFacts, ...]:
    """Return energy, cost and carbon of each run, with how to state a price where none has any."""
    unpriced = not any(run.analysis.cost and run.analysis.cost.gpus for run in runs)
    held = [RunFacts(label=run.label, facts=tuple(_facts(run))) for run in runs]
    if unpriced:
        hint = Fact(name="Cost", text=UNPRICED)
        held = [replace(each, facts=(*each.facts, hint)) for each in held]
    return tuple(entry for entry in held if entry.facts)


def lost_cost(analyses: Sequence[Analysis]) -> float | None:
    """Return what lost GPU time cost over some runs; None where a GPU has no price."""
    total = 0.0
    for analysis in analyses:
        amounts = {gpu.device: gpu.amount for gpu in analysis.cost.gpus} if analysis.cost else {}
        for time in analysis.gpu_time:
            amount = amounts.get(time.device)
            if amount is None:
                return None
            total += sum(seconds for name, seconds in time.seconds if name in LOST_CLASSES) / _HOUR * amount
    return total


def currency(analyses: Sequence[Analysis]) -> str:
    """Return the currency of prices; empty where none is stated, or runs differ."""
    names = {analysis.cost.currency for analysis in analyses if analysis.cost}
    return names.pop() if len(names) == 1 else ""


def price_note(analyses: Sequence[Analysis]) -> str:
    """Return when the prices of a cost held; empty where that is not stated."""
    days = sorted({analysis.cost.date for analysis in analyses if analysis.cost and analysis.cost.date})
    return f"Costs by prices of {display.join_words(days)}." if days else ""


def common_price(analyses: Sequence[Analysis]) -> str:
    """Return the price of a GPU-hour in words where it is one for all; empty otherwise."""
    said = {
        (gpu.amount, analysis.cost.currency) for analysis in analyses if analysis.cost for gpu in analysis.cost.gpus
    }
    if len(said) != 1:
        return ""
    ((amount, currency),) = said
    return "" if amount is None else display.money(amount, currency)


def _facts(run: ReportRun) -> Iterator[Fact]:
    yield from _energy(run.analysis)
    stated = run.analysis.cost
    if stated is None:
        return
    if stated.gpus:
        yield from _money(run, stated)
    if stated.carbon_intensity is not None:
        yield Fact(name="Carbon", text=_carbon(stated, stated.carbon_intensity))


def _energy(analysis: Analysis) -> Iterator[Fact]:
    """Yield the energy of all GPUs by integral and by counter, each where some GPU has it."""
    gpus = {gpu.id for gpu in analysis.run.gpus}
    figures = [each for each in analysis.statistics if each.device in gpus]
    integrals = [each.energy_joules for each in figures if each.energy_joules is not None]
    counters = [each.energy_counter for each in figures if each.energy_counter is not None]
    said = []
    if integrals:
        covered = _describe_coverage([each for each in figures if each.energy_joules is not None], analysis)
        said.append(
            f"{display.energy(sum(integrals))} by the integral of sampled power{_some_gpus(integrals, gpus)}{covered}"
        )
    if counters:
        gaps = sum(counter.in_gaps for counter in counters)
        missed = f", {display.energy(gaps)} of it in log gaps" if gaps > 0 else ""
        anew = ", which started anew in between" if any(counter.restarts for counter in counters) else ""
        counted = display.energy(sum(counter.total for counter in counters))
        said.append(f"{counted} by the driver's counter{anew}{_some_gpus(counters, gpus)}{missed}")
    doubted = [each.power_doubt for each in figures if each.power_doubt]
    if doubted:
        said.append(f"left out where power cannot be right: it {doubted[0]}{_some_gpus(doubted, gpus)}")
    if said:
        yield Fact(name="Energy", text="; ".join(said))


def _describe_coverage(figures: Sequence[DeviceStatistics], analysis: Analysis) -> str:
    """Return what part of the time an integral covers where that is not all, and what of it was bridged."""
    whole = (analysis.run.ended - analysis.run.started) / 1e6 * len(figures)
    seconds = [each.energy_seconds for each in figures if each.energy_seconds is not None]
    share = sum(seconds) / whole if whole > 0 and len(seconds) == len(figures) else 1.0
    bridged = sum(each.energy_bridged_seconds or 0.0 for each in figures) / max(len(figures), 1)
    part = f" over {display.percent(share)} of the time" if share < _NEARLY_ALL else ""
    return part + (f" (bridged: {display.duration(bridged)}{_per_gpu(figures)})" if bridged > 0 else "")


def _per_gpu(figures: Sequence[object]) -> str:
    return " of each GPU" if len(figures) > 1 else ""


def _some_gpus(held: Sequence[object], gpus: set[str]) -> str:
    return f" ({len(held)} of {len(gpus)} GPUs)" if len(held) < len(gpus) else ""


def _money(run: ReportRun, stated: Cost) -> Iterator[Fact]:
    held = gpu_time.job_gpu_seconds([run.analysis])
    if stated.total is None:
        yield Fact(name="Cost", text="not known: the recording has no length, or a GPU has no price")
    else:
        idle = display.or_not_recorded(stated.idle, lambda amount: display.money(amount, stated.currency))
        what = _IDLE if stated.idle else ""
        text = f"{display.money(stated.total, stated.currency)} for {display.gpu_time(held)}, idle: {idle}{what}"
        yield Fact(name="Cost", text=text)
    asked = f"; prices of {stated.date}" if stated.date else ""
    unnamed = "" if stated.currency else "; no currency given (--gpu-hour-price '2.49 EUR')"
    yield Fact(name="GPU-hour", text="; ".join(_prices(run, stated)) + asked + unnamed)


def _prices(run: ReportRun, stated: Cost) -> Iterator[str]:
    """Yield each price with where it is stated, and the GPUs it is for where they differ."""
    groups: dict[tuple[float | None, str], list[GpuPrice]] = {}
    for gpu in stated.gpus:
        groups.setdefault((gpu.amount, gpu.source), []).append(gpu)
    for (amount, source), gpus in groups.items():
        whose = f" for {run.devices([gpu.device for gpu in gpus])}" if len(groups) > 1 else ""
        if amount is None:
            yield f"no price{whose}"
        else:
            yield f"{display.money(amount, stated.currency)}{whose} ({display.clean(source)})"


def _carbon(stated: Cost, intensity: float) -> str:
    source = f"{display.number(intensity)}{display.GAP}g/kWh ({display.clean(stated.carbon_source)})"
    if stated.carbon_grams is None:
        return f"not known: the energy of a GPU was not recorded, or cannot be right; at {source}"
    grams = stated.carbon_grams
    mass = display.mass(grams)
    how = "the driver's counter" if stated.counted else "the integral of sampled power"
    return f"{mass} of CO2 equivalent for the GPUs alone, by {how}, at {source}"

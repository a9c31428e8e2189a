"""Energy, cost and carbon emissions of each run, or how to specify a price."""

from collections.abc import Iterator, Sequence
from functools import partial

from gpureport.analysis.account.cost import OPTION
from gpureport.analysis.results import LOST_CLASSES, Analysis, Cost
from gpureport.names import group_pairs
from gpureport.report.model.report_content import RunFacts
from gpureport.report.model.shapes import Fact
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

_HINT = Fact(name="Cost", text=f"no price was given: use {OPTION} PRICE, or [prices] in gpureport.toml")
_NEARLY_ALL = 0.995  # covered share below which it is mentioned


def build_spending(runs: Sequence[ReportRun]) -> tuple[RunFacts, ...]:
    hint = () if any(run.analysis.cost and run.analysis.cost.gpus for run in runs) else (_HINT,)
    held = [RunFacts(label=run.label, facts=(*_list_facts(run), *hint)) for run in runs]
    return tuple(entry for entry in held if entry.facts)


def lost_cost(analyses: Sequence[Analysis]) -> float | None:
    # None if a GPU has no price
    total = 0.0
    for analysis in analyses:
        amounts = {gpu.device: gpu.amount for gpu in analysis.cost.gpus} if analysis.cost else {}
        for time in analysis.gpu_time:
            if (amount := amounts.get(time.device)) is None:
                return None
            total += sum(seconds for name, seconds in time.seconds if name in LOST_CLASSES) / 3600 * amount
    return total


def currency(analyses: Sequence[Analysis]) -> str:
    names = {analysis.cost.currency for analysis in analyses if analysis.cost}
    return names.pop() if len(names) == 1 else ""


def common_price(analyses: Sequence[Analysis]) -> str:
    costs = [analysis.cost for analysis in analyses if analysis.cost]
    said = {(gpu.amount, cost.currency) for cost in costs for gpu in cost.gpus}
    amount, currency = said.pop() if len(said) == 1 else (None, "")
    return "" if amount is None else display.money(amount, currency)


def _list_facts(run: ReportRun) -> Iterator[Fact]:
    stated, said = run.analysis.cost, dict(_describe_energy(run))
    if stated is not None and stated.gpus:
        said["Cost"] = "not known: the recording has no length, or a GPU has no price"
        if stated.total is not None:
            show = partial(display.money, currency=stated.currency)
            said["Cost"] = f"{show(stated.total)} for {display.gpu_time(run.analysis.job_gpu_seconds)}"
            part = _name_part(1 - gpu_time.unobserved_ratio([run.analysis]))
            said["Idle cost"] = display.or_not_recorded(stated.idle, lambda idle: show(idle) + part)
        said["GPU-hour"] = "; ".join(_list_prices(run, stated))
    if stated is not None and stated.carbon_intensity is not None:
        at = f"at {display.number(stated.carbon_intensity)}{display.GAP}g/kWh ({display.clean(stated.carbon_source)})"
        how = "the driver's counter" if stated.counted else "the integral of sampled power"
        said["Carbon"] = f"not known: the energy of a GPU was not recorded or is implausible; {at}"
        if stated.carbon_grams is not None:
            grams = display.mass(stated.carbon_grams)
            said["Carbon"] = f"{grams} of CO2 equivalent for the GPUs alone, from {how}, {at}"
    yield from (Fact(name=name, text=text) for name, text in said.items())


def _name_part(share: float) -> str:
    return f" over {display.percent(share)} of the time" if share < _NEARLY_ALL else ""


def _describe_energy(run: ReportRun) -> Iterator[tuple[str, str]]:
    gpus = {gpu.id for gpu in run.run.gpus}

    def name_some(held: Sequence[object]) -> str:
        return f" ({len(held)} of {len(gpus)} GPUs)" if len(held) < len(gpus) else ""

    figures = [each for each in run.analysis.statistics if each.device in gpus]
    integrals = [each for each in figures if each.energy_joules is not None]
    counters = [each.energy_counter for each in figures if each.energy_counter is not None]
    doubts = [each.power_doubt for each in figures if each.power_doubt]
    if integrals:
        seconds, whole = sum(each.energy_seconds or 0.0 for each in integrals), run.seconds * len(integrals)
        bridged = sum(each.energy_bridged_seconds or 0.0 for each in integrals) / len(integrals)
        each_gpu = " of each GPU" if len(integrals) > 1 else ""
        part = _name_part(seconds / whole if whole else 1.0) + (
            f" (gaps bridged: {display.duration(bridged)}{each_gpu})" if bridged > 0 else ""
        )
        joules = display.energy(sum(each.energy_joules or 0.0 for each in integrals))
        yield "Energy", f"{joules}{name_some(integrals)}{part}"
    if counters:
        gaps = sum(counter.in_gaps for counter in counters)
        missed = f", {display.energy(gaps)} of it in log gaps" if gaps > 0 else ""
        anew = " (the counter restarted)" if any(counter.restarts for counter in counters) else ""
        counted = display.energy(sum(counter.total for counter in counters))
        yield "Energy counted", f"{counted}{anew}{name_some(counters)}{missed}"
    if doubts:
        yield "Energy left out", f"power is implausible: it {doubts[0]}{name_some(doubts)}"


def _list_prices(run: ReportRun, stated: Cost) -> Iterator[str]:
    groups = group_pairs(((gpu.amount, gpu.source), gpu.device) for gpu in stated.gpus)
    for (amount, source), gpus in groups.items():
        whose = f" for {run.devices(gpus)}" if len(groups) > 1 else ""
        price = "" if amount is None else display.money(amount, stated.currency)
        yield f"{price}{whose} ({display.clean(source)})" if price else f"no price{whose}"
    if stated.date:
        yield f"prices as of {stated.date}"
    if not stated.currency:
        yield "no currency given (--gpu-hour-price '2.49 EUR')"

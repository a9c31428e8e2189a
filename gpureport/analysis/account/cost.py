"""Calculates a run's cost from prices and carbon intensity. None are built in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from gpureport.analysis.results import Analysis, Cost, GpuPrice
from gpureport.errors import SettingsError
from gpureport.recording import Device
from gpureport.redaction import redact_text
from gpureport.settings import Section, Settings

OPTION, CARBON_OPTION = "--gpu-hour-price", "--carbon-intensity"
_HOUR, _KWH = 3600, 3.6e6
_MOST_OF_IT = 0.95  # share of the run that the driver's energy counter must cover
_SPELLINGS = {"1": "true", "yes": "true", "on": "true", "0": "false", "no": "false", "off": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    amount: float
    source: str
    model: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def fits(self, device: Device, labels: Mapping[str, str]) -> bool:
        has_labels = all(_fold(labels.get(name, "")) == wanted for name, wanted in self.labels.items())
        return has_labels and _split_words(self.model) <= _split_words(device.model)

    @property
    def rank(self) -> tuple[int, int]:
        return len(self.labels) + bool(self.model), len(_split_words(self.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    currency: str = ""
    date: str = ""
    rates: tuple[Rate, ...] = ()
    carbon_intensity: float | None = None
    carbon_source: str = ""

    def price_gpu(self, device: Device, labels: Mapping[str, str]) -> GpuPrice:
        best = max((rate for rate in self.rates if rate.fits(device, labels)), key=lambda rate: rate.rank, default=None)
        return GpuPrice(device=device.id, amount=best.amount if best else None, source=best.source if best else "")

    def with_overrides(self, gpu_hour: float | None, carbon_intensity: float | None, currency: str = "") -> "Prices":
        prices = self
        if gpu_hour is not None:
            rates = (Rate(amount=gpu_hour, source=OPTION),)
            prices = replace(prices, date="", rates=rates, currency=currency or self.currency)
        if carbon_intensity is not None:
            prices = replace(prices, carbon_intensity=carbon_intensity, carbon_source=CARBON_OPTION)
        return prices


def read_prices(settings: Settings) -> Prices:
    section, carbon = settings.section("prices"), settings.section("carbon")
    section.only({"currency", "date", "gpu_hour", "rate"})
    carbon.only({"intensity", "source"})
    every = section.amount("gpu_hour")
    rates = [] if every is None else [Rate(amount=every, source=section.at("gpu_hour"))]
    rates += [_read_rate(entry) for entry in settings.sections("prices.rate")]
    stated = {"currency": section.text("currency"), "date": _read_date(section)}
    for name, value in stated.items() if rates else ():
        if not value:
            raise SettingsError(
                rates[0].source, f"the prices have no {name}", f"add {name} under [prices]", code="incomplete_price"
            )
    intensity = carbon.amount("intensity")
    source = redact_text(carbon.text("source")) or (carbon.at("intensity") if intensity is not None else "")
    return Prices(**stated, rates=tuple(rates), carbon_intensity=intensity, carbon_source=source)


def _read_rate(section: Section) -> Rate:
    section.only({"gpu_hour", "model", "provider", "instance", "spot"})
    amount, spot = section.amount("gpu_hour"), section.switch("spot")
    if amount is None:
        first, how = next(iter(section.values), "gpu_hour"), "add gpu_hour, the price of a GPU-hour"
        raise section.wrong(first, "a rate has no gpu_hour", how, code="incomplete_price")
    said = {name: text for name in ("provider", "instance") if (text := _fold(section.text(name)))}
    said |= {} if spot is None else {"spot": str(spot).lower()}
    return Rate(amount=amount, source=section.at("gpu_hour"), model=section.text("model"), labels=said)


def _read_date(section: Section) -> str:
    value = section.values.get("date", "")
    try:
        return date.fromisoformat(str(value)).isoformat() if value != "" else ""
    except ValueError as error:
        raise section.wrong(
            "date", f"the value of date must be a date, not {value!r}", "write it as 2026-03-14", code="not_a_date"
        ) from error


def _fold(label: str) -> str:
    folded = label.strip().casefold()
    return _SPELLINGS.get(folded, folded)


def _split_words(name: str | None) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", (name or "").lower()))


def calculate_cost(analysis: Analysis, prices: Prices) -> Cost | None:
    if not prices.rates and prices.carbon_intensity is None:
        return None
    labels = dict(analysis.run.params) | dict(analysis.run.tags)
    gpus = tuple(prices.price_gpu(device, labels) for device in analysis.run.gpus)
    joules, counted = _sum_energy(analysis)
    priced, intensity = bool(prices.rates), prices.carbon_intensity
    known = {each.device for each in analysis.statistics if each.idle_seconds is not None}
    times = analysis.gpu_time if analysis.job_gpu_seconds > 0 else ()
    seconds = {each.device: dict(each.seconds) for each in times}
    wasted = {device: each.get("idle", 0.0) + each.get("unused", 0.0) for device, each in seconds.items()}
    return Cost(
        currency=prices.currency if priced else "",
        date=prices.date if priced else "",
        gpus=gpus if priced else (),
        total=_sum_prices(gpus, {each.device: each.job_seconds for each in times}),
        idle=_sum_prices(gpus, wasted) if known >= {gpu.id for gpu in analysis.run.gpus} else None,
        carbon_intensity=intensity,
        carbon_source=prices.carbon_source,
        energy_joules=joules,
        counted=counted,
        carbon_grams=None if joules is None or intensity is None else joules / _KWH * intensity,
    )


def _sum_prices(gpus: Sequence[GpuPrice], seconds: Mapping[str, float]) -> float | None:
    amounts = {gpu.device: gpu.amount for gpu in gpus}
    priced = [(amounts.get(device), length) for device, length in seconds.items()]
    known = [amount * length / _HOUR for amount, length in priced if amount is not None]
    return sum(known) if len(known) == len(priced) > 0 else None


def _sum_energy(analysis: Analysis) -> tuple[float | None, bool]:
    figures = {each.device: each for each in analysis.statistics}
    gpus = [figures[gpu.id] for gpu in analysis.run.gpus if gpu.id in figures]
    least = _MOST_OF_IT * (analysis.run.ended - analysis.run.started) / 1e6
    joules, is_counted = list[float](), True
    for one in gpus:
        own = one.energy_counter
        is_sure = own and not own.restarts and not own.impossible and own.total > 0 and own.seconds >= least
        # the counter also counts energy while no job holds the GPU
        is_own = bool(is_sure and not analysis.no_job)
        is_counted = is_counted and is_own
        joules += [own.total] if own and is_own else [] if one.energy_joules is None else [one.energy_joules]
    return (sum(joules), is_counted) if joules and len(joules) == len(analysis.run.gpus) else (None, False)

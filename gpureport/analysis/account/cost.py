"""What a run cost, by prices and a carbon intensity that a person states: nothing is built in.

Money, energy prices and carbon live here and nowhere else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from gpureport.analysis.results import Analysis, Cost, CounterReading, GpuPrice
from gpureport.errors import SettingsError
from gpureport.recording import Device, Run
from gpureport.redaction import redact_text
from gpureport.settings import Section, Settings

OPTION, CARBON_OPTION = "--gpu-hour-price", "--carbon-intensity"
_HOUR, _KWH = 3600, 3.6e6
_MOST_OF_IT = 0.95
"""Share of the run a counter must have been read over to stand for its energy."""
_SWITCH = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of a GPU-hour and where it is stated; a condition that is not None must fit.

    The conditions are words of the name of the GPU, and the labels `provider`, `instance` and `spot` of the run.
    """

    amount: float
    source: str
    model: str | None = None
    provider: str | None = None
    instance: str | None = None
    spot: bool | None = None

    def fits(self, device: Device, labels: Mapping[str, str]) -> bool:
        """Return whether the price holds for a GPU of a run with these labels."""
        provider, instance, spot = (
            labels.get(each, "").strip().casefold() for each in ("provider", "instance", "spot")
        )
        return (
            (self.provider is None or provider == self.provider.casefold())
            and (self.instance is None or instance == self.instance.casefold())
            and (self.spot is None or _SWITCH.get(spot) is self.spot)
            and _split_words(self.model) <= _split_words(device.model)
        )

    @property
    def rank(self) -> tuple[int, int]:
        """How closely it says what it holds for: conditions, then words of the model."""
        given = (self.model, self.provider, self.instance, self.spot)
        return sum(condition is not None for condition in given), len(_split_words(self.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Stated prices in the order stated, with their currency and the ISO day on which they held, and grams per kWh."""

    currency: str = ""
    date: str = ""
    rates: tuple[Rate, ...] = ()
    carbon_intensity: float | None = None
    carbon_source: str = ""

    def price_gpus(self, run: Run) -> tuple[GpuPrice, ...]:
        """Return the price of each GPU of a run: that which says most closely what it holds for, else the first."""
        labels = dict(run.params) | dict(run.tags)
        return tuple(self.price_gpu(device, labels) for device in run.gpus)

    def price_gpu(self, device: Device, labels: Mapping[str, str]) -> GpuPrice:
        """Return the price of a GPU in a run with these labels, without an amount where none fits."""
        best = max((rate for rate in self.rates if rate.fits(device, labels)), key=lambda rate: rate.rank, default=None)
        return GpuPrice(device=device.id, amount=best.amount if best else None, source=best.source if best else "")

    def with_overrides(self, gpu_hour: float | None, carbon_intensity: float | None, currency: str = "") -> "Prices":
        """Return these prices with those of the command line in their place: its price holds today, for every GPU.

        Without a currency its price is in that of these prices; None is not given.
        """
        prices = self
        if gpu_hour is not None:
            rates = (Rate(amount=gpu_hour, source=OPTION),)
            prices = replace(prices, date="", rates=rates, currency=currency or self.currency)
        if carbon_intensity is not None:
            prices = replace(prices, carbon_intensity=carbon_intensity, carbon_source=CARBON_OPTION)
        return prices


def read_prices(settings: Settings) -> Prices:
    """Return what `[prices]`, `[[prices.rate]]` and `[carbon]` of the settings say.

    Raises:
        SettingsError: when a key is unknown, a value is none of its kind, or a price has no currency or date.
    """
    section, carbon = settings.section("prices"), settings.section("carbon")
    section.only({"currency", "date", "gpu_hour", "rate"})
    carbon.only({"intensity", "source"})
    every = section.amount("gpu_hour")
    rates = [] if every is None else [Rate(amount=every, source=section.at("gpu_hour"))]
    rates += [_read_rate(entry) for entry in settings.sections("prices.rate")]
    stated = {"currency": section.text("currency"), "date": _read_date(section)}
    for name, value in stated.items() if rates else ():
        if not value:
            how = f"write {name} under [prices]"
            raise SettingsError(rates[0].source, f"prices without a {name}", how, code="incomplete_price")
    intensity = carbon.amount("intensity")
    source = redact_text(carbon.text("source")) or (carbon.at("intensity") if intensity is not None else "")
    return Prices(**stated, rates=tuple(rates), carbon_intensity=intensity, carbon_source=source)


def _read_rate(section: Section) -> Rate:
    names = ("model", "provider", "instance")
    section.only({"gpu_hour", "spot", *names})
    amount = section.amount("gpu_hour")
    if amount is None:
        first, how = next(iter(section.values), "gpu_hour"), "write the price of a GPU-hour as gpu_hour"
        raise section.wrong(first, "a rate without gpu_hour", how, code="incomplete_price")
    texts = {name: section.text(name) or None for name in names}
    return Rate(amount=amount, source=section.at("gpu_hour"), spot=section.switch("spot"), **texts)


def _read_date(section: Section) -> str:
    value = section.values.get("date", "")
    try:
        return date.fromisoformat(str(value)).isoformat() if value != "" else ""
    except ValueError as error:
        what = f"date must be a day, not {value!r}"
        raise section.wrong("date", what, "write it as 2026-03-14", code="not_a_date") from error


def _split_words(name: str | None) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", (name or "").lower()))


def calculate_cost(analysis: Analysis, prices: Prices) -> Cost | None:
    """Return what the run of an analysis cost, None where neither a price nor a carbon intensity is stated."""
    if not prices.rates and prices.carbon_intensity is None:
        return None
    gpus = prices.price_gpus(analysis.run)
    joules, counted = _sum_energy(analysis)
    priced, intensity = bool(prices.rates), prices.carbon_intensity
    known = {each.device for each in analysis.statistics if each.idle_seconds is not None}
    return Cost(
        currency=prices.currency if priced else "",
        date=prices.date if priced else "",
        gpus=gpus if priced else (),
        total=_sum_prices(analysis, gpus, idle=False),
        idle=_sum_prices(analysis, gpus, idle=True) if known >= {gpu.id for gpu in analysis.run.gpus} else None,
        carbon_intensity=intensity,
        carbon_source=prices.carbon_source,
        energy_joules=joules,
        counted=counted,
        carbon_grams=None if joules is None or intensity is None else joules / _KWH * intensity,
    )


def _sum_prices(analysis: Analysis, gpus: tuple[GpuPrice, ...], *, idle: bool) -> float | None:
    """Return the price of the time of jobs, or of idle and unused time; None where a GPU has no price, or no time."""
    amounts = {gpu.device: gpu.amount for gpu in gpus}
    prices = [amounts.get(time.device) for time in analysis.gpu_time]
    known = [amount for amount in prices if amount is not None]
    if len(known) < len(prices) or analysis.job_gpu_seconds <= 0:
        return None
    seconds = (dict(time.seconds) for time in analysis.gpu_time)
    wasted = (each.get("idle", 0.0) + each.get("unused", 0.0) for each in seconds)
    counted = wasted if idle else (time.job_seconds for time in analysis.gpu_time)
    return sum(amount * length / _HOUR for amount, length in zip(known, counted, strict=True))


def _sum_energy(analysis: Analysis) -> tuple[float | None, bool]:
    """Return the energy of all GPUs in joules, and whether the driver counted all of it."""
    figures = {each.device: each for each in analysis.statistics}
    gpus = [figures.get(gpu.id) for gpu in analysis.run.gpus]
    whole = (analysis.run.ended - analysis.run.started) / 1e6
    # the driver counts on where no job holds a GPU
    counted = [None if one is None or analysis.no_job else _read_counter(one.energy_counter, whole) for one in gpus]
    integrals = [None if one is None else one.energy_joules for one in gpus]
    joules = [one if one is not None else other for one, other in zip(counted, integrals, strict=True)]
    known = [each for each in joules if each is not None]
    return (sum(known), None not in counted) if gpus and len(known) == len(gpus) else (None, False)


def _read_counter(counter: CounterReading | None, whole: float) -> float | None:
    """Return what a counter rose by, None where part of it is not known or it stands still."""
    if counter is None or counter.restarts or counter.impossible or counter.total <= 0:
        return None
    return counter.total if counter.seconds >= _MOST_OF_IT * whole else None

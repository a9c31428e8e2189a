"""What an hour of a GPU costs and what a kWh emits: stated by a person, never built in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from gpureport.analysis.results import GpuPrice
from gpureport.errors import SettingsError
from gpureport.recording import Device, Run
from gpureport.redaction import redact_text
from gpureport.settings import Section, Settings

OPTION, CARBON_OPTION = "--gpu-hour-price", "--carbon-intensity"
_LABELS = ("provider", "instance")
_CONDITIONS = {"model", "spot", *_LABELS}
_ON, _OFF = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of a GPU-hour, and what it holds for: each condition that is not None must fit.

    Attributes:
        amount: the price.
        source: where it is stated.
        model: words that occur in the name of the GPU.
        provider: the run's label `provider`.
        instance: the run's label `instance`.
        spot: whether the run's label `spot` says yes.
    """

    amount: float
    source: str
    model: str | None = None
    provider: str | None = None
    instance: str | None = None
    spot: bool | None = None

    def fits(self, device: Device, labels: Mapping[str, str]) -> bool:
        """Return whether the price holds for a GPU of a run with these labels."""
        named = all(
            wanted is None or labels.get(name, "").strip().casefold() == wanted.casefold()
            for name, wanted in ((name, getattr(self, name)) for name in _LABELS)
        )
        spot = self.spot is None or _read_switch(labels.get("spot")) is self.spot
        return named and spot and _split_words(self.model) <= _split_words(device.model)

    @property
    def rank(self) -> tuple[int, int]:
        """How closely it says what it holds for: conditions, then words of the model."""
        given = (self.model, self.provider, self.instance, self.spot)
        return sum(condition is not None for condition in given), len(_split_words(self.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Stated prices and carbon intensity.

    Attributes:
        currency: name of the currency; empty where none is stated.
        date: when the prices held, as ISO 8601; empty where not stated.
        rates: prices in the order stated.
        carbon_intensity: grams of CO2 equivalent a kWh; None where not stated.
        carbon_source: where the intensity is stated.
    """

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
        fitting = [rate for rate in self.rates if rate.fits(device, labels)]
        if not fitting:
            return GpuPrice(device=device.id, amount=None, source="")
        best = max(fitting, key=lambda rate: rate.rank)
        return GpuPrice(device=device.id, amount=best.amount, source=best.source)

    def with_overrides(self, gpu_hour: float | None, carbon_intensity: float | None, currency: str = "") -> "Prices":
        """Return these prices with those of the command line in their place: its price holds today, for every GPU.

        Args:
            gpu_hour: the price; None where none is given.
            carbon_intensity: grams of CO2 equivalent per kWh; None where it is not given.
            currency: of that price; empty where it is that of these prices.
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
    currency, day = section.text("currency"), _read_date(section)
    for name, value in (("currency", currency), ("date", day)):
        if rates and not value:
            what = f"prices without a {name}"
            raise SettingsError(rates[0].source, what, f"write {name} under [prices]", code="incomplete_price")
    intensity = carbon.amount("intensity")
    named = redact_text(carbon.text("source"))
    return Prices(
        currency=currency,
        date=day,
        rates=tuple(rates),
        carbon_intensity=intensity,
        carbon_source=named or (carbon.at("intensity") if intensity is not None else ""),
    )


def _read_rate(section: Section) -> Rate:
    section.only({"gpu_hour", *_CONDITIONS})
    amount = section.amount("gpu_hour")
    if amount is None:
        first = next(iter(section.values), "gpu_hour")
        raise section.wrong(
            first, "a rate without gpu_hour", "write the price of a GPU-hour as gpu_hour", code="incomplete_price"
        )
    texts = {name: section.text(name) or None for name in ("model", *_LABELS)}
    return Rate(amount=amount, source=section.at("gpu_hour"), spot=section.switch("spot"), **texts)


def _read_date(section: Section) -> str:
    value: Any = section.values.get("date", "")
    if value == "":
        return ""
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        what = f"date must be a day, not {value!r}"
        raise section.wrong("date", what, "write it as 2026-03-14", code="not_a_date") from error


def _read_switch(text: str | None) -> bool | None:
    word = (text or "").strip().casefold()
    return True if word in _ON else False if word in _OFF else None


def _split_words(name: str | None) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", (name or "").lower()))

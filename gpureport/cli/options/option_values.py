"""The values that options take, read from what was typed."""

import re
from dataclasses import dataclass
from typing import Any

import click

from gpureport.cli.options.param_type import ParamType
from gpureport.cli.options.usage_errors import refuse
from gpureport.comparison.training import QualityTarget, parse_direction, parse_target

_FINEST, _COARSEST = 0.001, 86_400.0
_MOST_DIGITS = 18
"""Digits of a whole number at most. Nobody counts further, and Python refuses to read some thousands of them."""


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


class Pair(ParamType[tuple[str, str]]):
    """`KEY=VALUE`."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Take the pair apart at the first `=`."""
        key, equals, content = str(value).partition("=")
        if not equals or not key:
            refuse(f"{value!r} is not KEY=VALUE", param, ctx, code="not_a_pair")
        return key, content


def parse_amount(text: str) -> tuple[float, str] | None:
    """Return amount and unit of `N:UNIT`; None where it is not of that form."""
    number, _, unit = text.partition(":")
    try:
        amount = float(number)
    except ValueError:
        return None
    return (amount, unit) if 0 < amount < float("inf") and unit else None


class Amount(ParamType[tuple[float, str]]):
    """`N:UNIT`."""

    name = "n:unit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, str]:
        """Take amount and unit apart."""
        if isinstance(value, tuple):
            return value
        found = parse_amount(str(value))
        if found is None:
            refuse(f"{value!r} is not an amount and its unit, such as 12000:steps", param, ctx, code="not_an_amount")
        return found


class Direction(ParamType[tuple[str, bool]]):
    """`NAME=higher` or `NAME=lower`."""

    name = "name=higher|lower"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, bool]:
        """Take the metric and its direction apart."""
        found: tuple[str, bool] | None = value if isinstance(value, tuple) else parse_direction(str(value))
        if found is None:
            refuse(
                f"{value!r} does not say which way a metric gets better, as my_metric=higher does",
                param,
                ctx,
                code="not_a_direction",
            )
        return found


class Target(ParamType[QualityTarget]):
    """`NAME=VALUE`."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> QualityTarget:
        """Take the metric and its value apart."""
        found = value if isinstance(value, QualityTarget) else parse_target(str(value))
        if found is None:
            refuse(
                f"{value!r} is not a metric and its value, such as val_accuracy=0.78", param, ctx, code="not_a_target"
            )
        return found


class Indices(ParamType[tuple[int, ...]]):
    """Comma-separated whole numbers."""

    name = "0,2,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Take the numbers apart."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(map(_is_whole, parts)):
            refuse(f"{value!r} is not a list of GPU indices, such as 0,2", param, ctx, code="not_gpu_indices")
        return tuple(sorted({int(part) for part in parts}))


class JobNumber(ParamType[int]):
    """The number of a job, from 1, or `each`, which is 0."""

    name = "n|each"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Take the number."""
        text = str(value).strip()
        if text == "each":
            return 0
        if not (_is_whole(text) and int(text)):
            refuse(
                f"{value!r} is neither the number of a job, such as 2, nor each", param, ctx, code="not_a_job_number"
            )
        return int(text)


class Fields(ParamType[tuple[str, ...]]):
    """Comma-separated query fields."""

    name = "field,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Take the fields apart."""
        if isinstance(value, tuple):
            return value
        fields = tuple(field.strip() for field in str(value).split(","))
        if not all(fields):
            refuse(
                f"{value!r} is not a list of query fields, such as timestamp,index,utilization.gpu",
                param,
                ctx,
                code="not_a_list",
            )
        return fields


class LabelNames(ParamType[tuple[str, ...]]):
    """Comma-separated names of labels."""

    name = "label,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Take the names apart; a name given twice counts once."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",")))
        if not all(names):
            refuse(f"{value!r} is not a list of labels, such as user,project,node", param, ctx, code="not_a_list")
        return names


class Seconds(ParamType[float]):
    """A time above 0, in seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number. The shortest interval of nvidia-smi is a millisecond."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not _FINEST <= seconds <= _COARSEST:
            refuse(f"{value!r} is not a time in seconds, from 0.001 to 86400", param, ctx, code="not_a_time")
        return seconds


class Detail(ParamType[int | None]):
    """`full`, `auto`, or whole seconds."""

    name = "full|auto|seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Return the seconds of a bucket, 0 for every sample, None to go by size."""
        named = {"full": 0, "auto": None}
        text = str(value)
        if text in named:
            return named[text]
        if not (_is_whole(text) and 1 <= int(text) <= _COARSEST):
            refuse(
                f"{value!r} is neither full nor auto nor whole seconds, from 1 to 86400",
                param,
                ctx,
                code="not_a_detail",
            )
        return int(text)


class Price(ParamType[float]):
    """A number from 0 on."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number; neither infinity nor NaN is a price."""
        try:
            price = float(value)
        except ValueError:
            price = -1.0
        if not 0 <= price < float("inf"):
            refuse(f"{value!r} is not a price", param, ctx, code="not_a_price")
        return price


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHourPrice:
    """The price of a GPU-hour; an empty currency is that of the settings."""

    amount: float
    currency: str


class MoneyPrice(ParamType[GpuHourPrice]):
    """A price with or without its currency: `2.49`, `2.49 EUR`, `EUR 2.49`, `$2.49`."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GpuHourPrice:
        """Take the number and the currency apart."""
        number, currency = str(value), ""
        if match := re.fullmatch(r"([^A-Z€$£¥\s]+)\s*([A-Z]{3}|[€$£¥])", number.strip()):
            number, currency = match.groups()
        elif match := re.fullmatch(r"([A-Z]{3}|[€$£¥])\s*([^A-Z€$£¥\s]+)", number.strip()):
            currency, number = match.groups()
        try:
            amount = Price().convert(number, param, ctx)
        except click.BadParameter:
            refuse(f"{value!r} is not a price, such as 2.49 or '2.49 EUR'", param, ctx, code="not_a_price")
        return GpuHourPrice(amount=amount, currency=currency)


class GpuModel(ParamType[str]):
    """A GPU model that gpureport knows, as nvidia-smi or a person writes it."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Look the model up; a name that was mistyped would say nothing in silence."""
        from difflib import get_close_matches  # noqa: PLC0415 - only here

        from gpureport.gpus import find_gpu, load_gpus  # noqa: PLC0415 - as above

        name = str(value).strip()
        if find_gpu(name) is None:
            models = {gpu.model.lower(): gpu.model for gpu in load_gpus()}
            words = {word.lower(): model for model in models.values() for word in model.split()} | models
            close = get_close_matches(name.lower(), words, n=1)
            hint = f"did you mean {words[close[0]]!r}?" if close else "known are " + ", ".join(models.values())
            refuse(f"{name!r} is not a known GPU model; {hint}", param, ctx, code="unknown_gpu_model")
        return name

"""Parsers for option values; `EXPECTED` describes the form of each value."""

import re
from collections.abc import Callable
from datetime import date
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpureport.errors import CodedProblem, SettingsError
from gpureport.places import Place, RemotePath, fetch, parse_place

if TYPE_CHECKING:
    from gpureport.comparison.factors import Factor
    from gpureport.comparison.training import QualityTarget

Value = TypeVar("Value")
_SHORTEST, _LONGEST = 0.001, 86_400


class RefusedError(click.BadParameter):
    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def read(reader: Callable[[Any], Any], text: Any) -> Any:
    try:
        return reader(text)
    except ValueError as error:
        what, hint, code = EXPECTED[reader]
        raise RefusedError(f"{text!r} is {what}; {hint}", code) from error


def single(texts: tuple[str, ...]) -> str | None:
    if len(texts) > 1:
        raise RefusedError("this applies to all sources; ingest logs to give each its own value", code="given_twice")
    return texts[0] if texts else None


def pair(text: str) -> tuple[str, str]:
    key, equals, content = text.partition("=")
    return _need((key, content) if key and equals else None)


def amount(text: str) -> tuple[float, str]:
    number, _, unit = text.partition(":")
    return _need((found, unit) if (found := _number(number)) > 0 and unit else None)


def direction(text: str) -> tuple[str, bool]:
    from gpureport.comparison.training import parse_direction

    return _need(parse_direction(text))


def target(text: str) -> "QualityTarget":
    from gpureport.comparison.training import parse_target

    return _need(parse_target(text))


def grouping(text: str) -> "tuple[Factor, ...]":
    from gpureport.comparison.factors import parse_factors

    try:
        return parse_factors(text)
    except ValueError as error:
        raise RefusedError(str(error), "not_a_grouping") from error


def indices(text: str) -> tuple[int, ...]:
    return tuple(sorted({_whole(part.strip()) for part in text.split(",")}))


def job(text: str) -> int:
    return 0 if text.strip() == "each" else _need(_whole(text.strip()))


def fields(text: str) -> tuple[str, ...]:
    return tuple(_need(part.strip()) for part in text.split(","))


def labels(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fields(text)))


def seconds(text: str) -> float:
    return _need(found if _SHORTEST <= (found := _number(text)) <= _LONGEST else None)


def detail(text: str) -> int | None:
    if text in {"full", "auto"}:
        return 0 if text == "full" else None
    return _need(found if (found := _whole(text)) <= _LONGEST else None)


def night(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def price(text: str) -> float:
    if (found := _number(text)) < 0:
        raise ValueError
    return found


def gpu_hour_price(text: str) -> tuple[float, str]:
    money, bare = r"([A-Z]{3}|[€$£¥])", r"([^A-Z€$£¥\s]+)"
    after = re.fullmatch(rf"{bare}\s*{money}?", text.strip())
    before = re.fullmatch(rf"{money}\s*{bare}", text.strip())
    number, currency = after.groups() if after else before.groups()[::-1] if before else ("", "")
    return price(number), currency or ""


def gpu_model(text: str) -> str:
    from difflib import get_close_matches

    from gpureport.metrics import find_gpu, load_gpus

    name = text.strip()
    if find_gpu(name) is None:
        models = {gpu.model.lower(): gpu.model for gpu in load_gpus()}
        words = {word.lower(): model for model in models.values() for word in model.split()} | models
        close = get_close_matches(name.lower(), words, n=1)
        hint = f"did you mean {words[close[0]]!r}?" if close else "known models are " + ", ".join(models.values())
        raise RefusedError(f"{name!r} is not a known GPU model; {hint}", code="unknown_gpu_model")
    return name


def export(text: str) -> Place:
    form, _, name = text.partition("=")
    if form in {"benchmark-smaller", "benchmark-bigger", "bencher"}:
        raise RefusedError(f"{form} was removed; write openmetrics=FILE", code="gone_option")
    return parse_place(_need(name if form == "openmetrics" else None))


def local_folder(text: str) -> Path:
    found = parse_place(text)
    if isinstance(found, RemotePath):
        raise SettingsError(str(found), "a recording needs a local folder", "name one", code="only_local")
    return found


def fetched(text: str) -> Path:
    return fetch(parse_place(text))


def _need(found: Value | None) -> Value:
    if not found:
        raise ValueError
    return found


def _whole(text: str) -> int:
    # Python refuses to parse thousands of digits
    return int(_need(re.fullmatch("[0-9]{1,18}", text))[0])


def _number(text: str) -> float:
    if not isfinite(found := float(text)):
        raise ValueError
    return found


EXPECTED: dict[Callable[[Any], Any], CodedProblem] = {
    pair: ("not a key with a value", "write KEY=VALUE", "not_a_pair"),
    amount: ("not an amount with a unit", "write it as 12000:steps", "not_an_amount"),
    direction: ("not a metric with a direction", "write it as my_metric=higher", "not_a_direction"),
    target: ("not a metric with a value", "write it as val_accuracy=0.78", "not_a_target"),
    indices: ("not a list of GPU indices", "write it as 0,2", "not_gpu_indices"),
    job: ("not a job number", "use `each` or a number of 1 or higher", "not_a_job_number"),
    fields: ("not a list of query fields", "write it as timestamp,index,utilization.gpu", "not_a_list"),
    labels: ("not a list of labels", "write it as user,project,node", "not_a_list"),
    seconds: ("not a time in seconds", "write a number from 0.001 to 86400", "not_a_time"),
    detail: ("not a level of detail", "write full, auto, or whole seconds from 1 to 86400", "not_a_detail"),
    night: ("not a date", "write it as 2026-03-14", "not_a_date"),
    price: ("not zero or a positive number", "write it as 2.49", "not_a_price"),
    gpu_hour_price: ("not a price", "write it as 2.49 or '2.49 EUR'", "not_a_price"),
    export: ("not an export", "write openmetrics=FILE", "not_an_export"),
}

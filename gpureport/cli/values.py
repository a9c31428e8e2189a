"""What was typed for an option, read: each function returns the value, or refuses the text with a code."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gpureport.errors import SettingsError
from gpureport.places import Place, RemotePath, parse_place

if TYPE_CHECKING:
    from gpureport.comparison.factors import Factor
    from gpureport.comparison.training import QualityTarget

_LONGEST = 86_400
_WHOLE = re.compile("[0-9]{1,18}")
"""A whole number. Nobody counts further, and Python refuses to read some thousands of digits."""
_FORMATS, _GONE = ("openmetrics",), ("benchmark-smaller", "benchmark-bigger", "bencher")
"""What `--export` writes, and what it wrote once."""


class RefusedError(ValueError):
    """A text that an option does not take, with a code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHourPrice:
    """The price of a GPU-hour; an empty currency is that of the settings."""

    amount: float
    currency: str


def refuse(message: str, *, code: str) -> NoReturn:
    """Refuse what was typed."""
    raise RefusedError(message, code)


def single(texts: tuple[str, ...]) -> str | None:
    """Read an option that stands for all sources; None where it was not given."""
    if len(texts) > 1:
        what = (
            "this option may be given only once, as it applies to all sources. To use different values, run "
            "`gpureport ingest` for each log, then pass the names of the stored runs"
        )
        refuse(what, code="given_twice")
    return texts[0] if texts else None


def pair(text: str) -> tuple[str, str]:
    """Read `KEY=VALUE`."""
    key, equals, content = text.partition("=")
    if not equals or not key:
        refuse(f"{text!r} is not KEY=VALUE", code="not_a_pair")
    return key, content


def amount(text: str) -> tuple[float, str]:
    """Read `N:UNIT`."""
    number, _, unit = text.partition(":")
    found = _number(number)
    if not (found and found > 0 and unit):
        refuse(f"{text!r} is not an amount and its unit, such as 12000:steps", code="not_an_amount")
    return found, unit


def direction(text: str) -> tuple[str, bool]:
    """Read `NAME=higher` or `NAME=lower`."""
    from gpureport.comparison.training import parse_direction

    found: tuple[str, bool] | None = parse_direction(text)
    if found is None:
        what = f"{text!r} does not say which way a metric gets better, as my_metric=higher does"
        refuse(what, code="not_a_direction")
    return found


def target(text: str) -> "QualityTarget":
    """Read `NAME=VALUE` of a training metric."""
    from gpureport.comparison.training import parse_target

    found = parse_target(text)
    if found is None:
        refuse(f"{text!r} is not a metric and its value, such as val_accuracy=0.78", code="not_a_target")
    return found


def grouping(text: str) -> "tuple[Factor, ...]":
    """Read what makes a step: `step`, `folder`, `gpu`, `param:KEY` or `tag:KEY`, or two of the last three."""
    from gpureport.comparison.factors import parse_factors

    try:
        return parse_factors(text)
    except ValueError as error:
        raise RefusedError(str(error), "not_a_grouping") from error


def indices(text: str) -> tuple[int, ...]:
    """Read GPU indices."""
    parts = _split(text)
    if not all(map(_WHOLE.fullmatch, parts)):
        refuse(f"{text!r} is not a list of GPU indices, such as 0,2", code="not_gpu_indices")
    return tuple(sorted({*map(int, parts)}))


def job(text: str) -> int:
    """Read the number of a job, from 1, or `each`, which is 0."""
    number = text.strip()
    if number != "each" and not (_WHOLE.fullmatch(number) and int(number)):
        refuse(f"{text!r} is neither the number of a job, such as 2, nor each", code="not_a_job_number")
    return 0 if number == "each" else int(number)


def fields(text: str) -> tuple[str, ...]:
    """Read query fields."""
    found = _split(text)
    if not all(found):
        what = f"{text!r} is not a list of query fields, such as timestamp,index,utilization.gpu"
        refuse(what, code="not_a_list")
    return found


def labels(text: str) -> tuple[str, ...]:
    """Read names of labels; one given twice counts once."""
    found = tuple(dict.fromkeys(_split(text)))
    if not all(found):
        refuse(f"{text!r} is not a list of labels, such as user,project,node", code="not_a_list")
    return found


def seconds(text: str) -> float:
    """Read a time between two samples. The shortest interval of nvidia-smi is a millisecond."""
    found = _number(text)
    if found is None or not 0.001 <= found <= _LONGEST:  # noqa: PLR2004 - as the sentence says
        refuse(f"{text!r} is not a time in seconds, from 0.001 to 86400", code="not_a_time")
    return found


def detail(text: str) -> int | None:
    """Read the seconds of a bucket: 0 for every sample, None to go by size."""
    if text in {"full", "auto"}:
        return 0 if text == "full" else None
    if not (_WHOLE.fullmatch(text) and 1 <= int(text) <= _LONGEST):
        refuse(f"{text!r} is neither full nor auto nor whole seconds, from 1 to 86400", code="not_a_detail")
    return int(text)


def price(text: str) -> float:
    """Read a number from 0 on; neither infinity nor NaN is a price."""
    found = _number(text)
    if found is None or found < 0:
        refuse(f"{text!r} is not a price", code="not_a_price")
    return found


def gpu_hour_price(text: str) -> GpuHourPrice:
    """Read a price with or without its currency: `2.49`, `2.49 EUR`, `EUR 2.49`, `$2.49`."""
    money, bare = r"([A-Z]{3}|[€$£¥])", r"([^A-Z€$£¥\s]+)"
    after, before = re.fullmatch(rf"{bare}\s*{money}?", text.strip()), re.fullmatch(rf"{money}\s*{bare}", text.strip())
    number, currency = after.groups() if after else before.groups()[::-1] if before else ("", "")
    found = _number(number)
    if found is None or found < 0:
        refuse(f"{text!r} is not a price, such as 2.49 or '2.49 EUR'", code="not_a_price")
    return GpuHourPrice(amount=found, currency=currency or "")


def gpu_model(text: str) -> str:
    """Look a GPU model up; a name that was mistyped would say nothing in silence."""
    from difflib import get_close_matches

    from gpureport.metrics import find_gpu, load_gpus

    name = text.strip()
    if find_gpu(name) is None:
        models = {gpu.model.lower(): gpu.model for gpu in load_gpus()}
        words = {word.lower(): model for model in models.values() for word in model.split()} | models
        close = get_close_matches(name.lower(), words, n=1)
        hint = f"did you mean {words[close[0]]!r}?" if close else "known are " + ", ".join(models.values())
        refuse(f"{name!r} is not a known GPU model; {hint}", code="unknown_gpu_model")
    return name


def export(text: str) -> Place:
    """Read `FORMAT=FILE`, whose file is to be written; there is one format."""
    form, _, name = text.partition("=")
    if form in _GONE:
        msg = f"{form} is gone; take the figures of gpureport analyze --format json, or openmetrics=FILE"
        refuse(msg, code="gone_option")
    if form not in _FORMATS or not name:
        refuse(f"{text!r} is not FORMAT=FILE with one of {', '.join(_FORMATS)}", code="not_an_export")
    return parse_place(name)


def local_folder(text: str) -> Path:
    """Read a folder of this machine to write into."""
    found = parse_place(text)
    if isinstance(found, RemotePath):
        what = "a job is recorded on this machine"
        raise SettingsError(str(found), what, "name a folder here", code="only_local")
    return found


def fetched(text: str) -> Path:
    """Read a file; one of a bucket is fetched, and its copy returned."""
    from gpureport.places.transfer import fetch

    found = parse_place(text)
    return found if isinstance(found, Path) else fetch(found)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _number(text: str) -> float | None:
    """Return a finite number; None for any other text."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None

"""Segments of bars: classes of GPU time in the order in which they are drawn."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from gpureport.report.model.pictures import ClassName, SpentBar, TimeSegment
from gpureport.report.wording import terms

_ORDER = (
    "computing",
    "throttled",
    "hollow",
    "short_pauses",
    "low_use",
    "waiting_for_input",
    "startup",
    "idle",
    "tail",
    "unused",
    "held",
    "gpu_lost",
    "no_samples",
)
"""What was used first, and what slowed it; then pauses, and what was not used at all."""

Causes = Mapping[str, Collection[str]]
"""What lies behind the time of classes, by class."""


def name_class(key: str, causes: Causes) -> str:
    """Return the name of a class as it stands in a legend; slowed time by its cause, where it has only one."""
    return terms.class_title(key, causes.get(key, ()))


def build_segments(
    amounts: Mapping[str, float], format_amount: Callable[[float], str], causes: Causes
) -> tuple[TimeSegment, ...]:
    """Return the classes that took time, in the unit of the bars; time without a job is in none of them."""
    return tuple(
        TimeSegment(key=key, label=name_class(key, causes), value=amounts[key], text=format_amount(amounts[key]))
        for key in sort_classes(amounts)
        if key != "no_job" and amounts[key] > 0
    )


def sort_classes(keys: Iterable[str]) -> list[str]:
    """Return classes in the order in which they are drawn."""
    found = set(keys)
    return [*(key for key in _ORDER if key in found), *sorted(found - set(_ORDER))]


def list_legend(bars: Sequence[SpentBar], causes: Causes, least: float = 0.0) -> tuple[ClassName, ...]:
    """Return the classes of some bars, those alone that some segment longer than `least` shows."""
    shown = {part.key for bar in bars for part in bar.segments if part.value > least}
    return tuple(ClassName(key=key, label=name_class(key, causes)) for key in sort_classes(shown))


def describe_pauses(bars: Sequence[SpentBar]) -> str:
    """Return a sentence on short pauses, where bars have some; begins with a space."""
    has_pauses = any(part.key == "short_pauses" for bar in bars for part in bar.segments)
    return " Short pauses count as work, not as lost." if has_pauses else ""

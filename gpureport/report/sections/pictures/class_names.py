"""Segments of bars: classes of GPU time in the order in which they are drawn."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.report.model.pictures import ClassName, SpentBar, TimeSegment
from gpureport.report.wording import terms


def name_class(key: str) -> str:
    """Return the name of a class as it stands in a legend."""
    label = terms.CLASSES.get(key, key.replace("_", " "))
    return f"{label[:1].upper()}{label[1:]}"


def build_segments(amounts: Mapping[str, float], format_amount: Callable[[float], str]) -> tuple[TimeSegment, ...]:
    """Return the classes that took time, in the unit of the bars; time without a job is in none of them."""
    return tuple(
        TimeSegment(key=key, label=name_class(key), value=amounts[key], text=format_amount(amounts[key]))
        for key in sort_classes(amounts)
        if key != "no_job" and amounts[key] > 0
    )


def sort_classes(keys: Iterable[str]) -> list[str]:
    """Return classes in the order in which they are drawn."""
    found = set(keys)
    return [*(key for key in GPU_TIME_CLASSES if key in found), *sorted(found - set(GPU_TIME_CLASSES))]


def list_legend(bars: Sequence[SpentBar], least: float = 0.0) -> tuple[ClassName, ...]:
    """Return the classes of some bars, those alone that some segment longer than `least` shows."""
    shown = {part.key for bar in bars for part in bar.segments if part.value > least}
    return tuple(ClassName(key=key, label=name_class(key)) for key in sort_classes(shown))

"""Headings that people's recorders write over the load of a machine, and how the numbers below them are scaled."""

from dataclasses import dataclass

from gpureport.importers.values.column_names import CORE_LOADS, HOST_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.values.heading_words import DECIMAL_WORDS, heading_words
from gpureport.units import UNITS

TIME = "timestamp"


@dataclass(frozen=True, slots=True)
class HostColumn:
    """What a column holds.

    Attributes:
        metric: the metric, TIME, or CORE for one of several cores.
        scale: what a number is multiplied with.
        share: whether it is a share whose heading does not say of what: 93 may be 93 % or 0.93 may be.
        assumed: what its heading was taken for, where it leaves that open.
        utc: whether it is a time in UTC.
    """

    metric: str
    scale: float = 1.0
    share: bool = False
    assumed: str = ""
    utc: bool = False


def interpret_heading(heading: str) -> HostColumn | None:
    """Return what a column holds, None where that is not known."""
    if is_time_heading(heading):
        return HostColumn(TIME, utc="utc" in heading_words(heading))
    name = recognise_column(heading, HOST_COLUMNS)
    if name is None:
        return None
    if name.unit:
        assumed = name.unit if name.unit_word in DECIMAL_WORDS else ""
        return HostColumn(name.target, UNITS[name.unit].to_base(1), assumed=assumed)
    if name.target in CORE_LOADS or name.target.endswith("_ratio"):
        counts_cores = "cores" in heading_words(heading)
        return HostColumn(name.target, 1.0 if counts_cores else 0.01, share=not counts_cores)
    return HostColumn(name.target)

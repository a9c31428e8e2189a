"""Rows in their place in time."""

from dataclasses import dataclass, field

from gpureport.columns import BoolArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """Rows with their place in time.

    Attributes:
        times: time of each row, in microseconds.
        devices: index into `ids` for each row; negative for a row to leave out.
        ids: device ids.
        left_out: rows that their placement leaves out, by reason.
    """

    times: IntArray
    devices: IntArray
    ids: list[str]
    left_out: dict[str, BoolArray] = field(default_factory=dict)

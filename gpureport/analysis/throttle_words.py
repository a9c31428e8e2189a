"""What is said of a lowered clock: its cause, in words, and what to do."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis import wording
from gpureport.analysis.cells import Cells
from gpureport.analysis.clock_signals import Reference, Signals, event, events_recorded
from gpureport.analysis.intervals import Spans
from gpureport.analysis.throttle_rows import THERMAL, Judged
from gpureport.columns import BoolArray

UNEXPLAINED = "hardware slowdown, reason not recorded"
"""Cause where only the bit that stands for heat, power brake and others alike was set."""

_HEAT = (
    "Improve cooling: check airflow, fans, filters and the neighbours of this slot; lower the power limit "
    "(nvidia-smi -pl) if cooling cannot be improved; record temperature.memory, since hot memory slows a cool core."
)
_BRAKE = (
    "Check power delivery, not cooling: power supply, cabling, and whether the management controller of the server "
    "asserts the power brake."
)
_EITHER = (
    "Check both cooling (airflow, fans, filters) and power delivery (power supply, cabling, power brake), and record "
    "all clock event reasons, which tell the two apart."
)
HEAT, HARDWARE = (_HEAT,), (_BRAKE, _EITHER)
"""All that may be recommended against either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episodes:
    """Throttled stretches of one GPU and what was measured in them.

    Attributes:
        kind: thermal_throttle or hw_throttle.
        device: the GPU.
        spans: when.
        rows: throttled rows within.
        found: series of the GPU.
        judged: how the rows were told.
        lost: seconds lost, None when not known.
        reference: clock they are set against, None when not known.
        clock_ratio: mean clock of busy throttled rows, of the reference; NaN when not known.
        cause: what lies behind it.
    """

    kind: str
    device: str
    spans: Spans
    rows: BoolArray
    found: Signals
    judged: Judged
    lost: float | None
    reference: Reference | None
    clock_ratio: float
    cause: str

    @property
    def heat(self) -> bool:
        """Whether heat is the reason."""
        return self.kind == "thermal_throttle"


def cause(kind: str, cells: Cells, found: Signals, rows: BoolArray, *, direct: bool, near_limit: float) -> str:  # noqa: PLR0913 - what decides it
    """Return what lies behind throttled rows; a power brake only where its own bit is set.

    Args:
        kind: thermal_throttle or hw_throttle.
        cells: the GPU's samples.
        found: its signals.
        rows: throttled rows.
        direct: whether event bits told.
        near_limit: degrees below the temperature limit from which heat may be the reason.
    """
    if kind == "thermal_throttle":
        return "heat"
    if not direct:
        return "hardware"
    if (event(cells, "hw_power_brake_slowdown") & rows).any():
        return "power brake"
    hot = (found.temperature[rows] >= found.limit - near_limit).any()
    return UNEXPLAINED if hot or not events_recorded(cells, *THERMAL) else "hardware"


def advice(found: Episodes) -> str:
    """Return what to do."""
    if found.heat:
        return _HEAT
    return _EITHER if found.cause == UNEXPLAINED else _BRAKE


def summary(found: Episodes, seconds: float) -> str:
    """Return what happened, how far the clock fell, and whether the loss is known."""
    hardware = "a power brake" if found.cause == "power brake" else "the hardware"
    seems = "was" if found.judged.direct else "appears to have been"
    said = (
        f"{wording.gpu(found.device)} {seems} slowed by {'heat' if found.heat else hardware} for "
        f"{wording.duration(seconds)} in {wording.times(len(found.spans), 'episode')}"
    )
    hot = found.found.temperature[found.rows]
    if found.heat and not np.isnan(hot).all():
        said += f", at up to {np.nanmax(hot):.0f} °C"
    if found.cause == UNEXPLAINED:
        said += "; whether by heat or by a power brake was not recorded"
    if found.reference and not np.isnan(found.clock_ratio):
        said += f"; its clock fell to {wording.percent(found.clock_ratio)} of {found.reference.whose}"
    if found.lost is None:
        said += "; the time lost is not known without a clock to compare"
    return said + "."


def ruled_out(found: Episodes) -> tuple[str, ...]:
    """Return which other explanations were excluded."""
    if found.judged.direct:
        return ("the power cap and locked clocks, which have bits of their own",)
    if found.heat:
        return ("the power cap: power was below its limit", "idle clocks: the GPU was busy")
    return ("heat: the core was cool", "the power cap: power was far below its limit", "idle clocks: the GPU was busy")

"""How long GPUs paused, and how long they worked below some levels, in stretches that a finding is about."""

from collections.abc import Mapping

import numpy as np

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import BELOW, IDLE_RATIO
from gpureport.findings import Evidence

_ROUNDING = 1e-6


def build_level_evidence(gpus: Mapping[str, DeviceSeries], spans: Mapping[str, Spans]) -> tuple[Evidence, ...]:
    """Return the share of the time at 5% and less, and below each level of the statistics, over several GPUs."""
    values = np.concatenate([one.values(UTILISATION) for one in gpus.values()])
    seconds = np.concatenate(
        [
            intervals.overlap_seconds(one.start - one.shift, one.end - one.shift, spans[name])
            for name, one in gpus.items()
        ]
    )
    seconds[np.isnan(values)] = 0.0
    whole = max(float(seconds.sum()), _ROUNDING)
    rows = {f"at {_percent(IDLE_RATIO)} and less": values <= IDLE_RATIO + _ROUNDING}
    rows |= {f"below {_percent(level)}": values < level - _ROUNDING for level in BELOW}
    return tuple(
        Evidence(
            metric=UTILISATION,
            statistic=f"share of that time {where}",
            observed=float(seconds[found].sum()) / whole,
            unit="1",
        )
        for where, found in rows.items()
    )


def _percent(level: float) -> str:
    return f"{100 * level:.0f}%"

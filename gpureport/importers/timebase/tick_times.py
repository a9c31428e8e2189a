"""Times for rows without time stamps, counted from the interval that a person names."""

from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import IntArray

UNUSED_INTERVAL = "The log has time stamps: --interval was not used."


@dataclass(slots=True)
class TickTimes:
    """Places the n-th row of each GPU n intervals after the first.

    Attributes:
        interval: seconds between ticks.
    """

    interval: float
    _rows: dict[str, int] = field(default_factory=dict)

    def times(self, devices: IntArray, ids: list[str]) -> IntArray:
        """Return times in microseconds from the first row.

        Args:
            devices: index into `ids` for each row; rows with a negative one get the time 0.
            ids: device ids.
        """
        times = np.zeros(len(devices), dtype=np.int64)
        for code, device in enumerate(ids):
            rows = np.flatnonzero(devices == code)
            before = self._rows.get(device, 0)
            times[rows] = np.rint((before + np.arange(len(rows))) * self.interval * 1e6).astype(np.int64)
            self._rows[device] = before + len(rows)
        return times

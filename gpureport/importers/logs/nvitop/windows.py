"""Means since a collection began to means of the time since the row before.

`collect()` gives the mean since `activate` or `clear` was called last. A script that never clears, as the one in
nvitop's README, writes means over an ever longer time: their differences, weighted with the time, are the means of the
windows between the rows.
"""

from dataclasses import dataclass, field

_OVERSHOOT = 0.02
"""Share by which the difference of two means may err, since duration and mean are taken a moment apart."""


@dataclass(slots=True)
class Windows:
    """What the row before said, column by column.

    Attributes:
        cumulative: whether any row went on with the collection of the row before.
    """

    cumulative: bool = False
    _duration: float | None = None
    _time: int | None = None
    _means: dict[int, float] = field(default_factory=dict)

    def row(self, time: int | None, duration: float | None, means: dict[int, float]) -> dict[int, float]:
        """Return the means of the time since the row before; a column that lacked a mean then has none now.

        Args:
            time: time of the row in microseconds, None when not recorded.
            duration: seconds since the collection began, None when not recorded.
            means: means since then by column.
        """
        before, known, earlier = self._duration, self._means, self._time
        self._duration, self._means, self._time = duration, means, time
        if before is None or duration is None or time is None or earlier is None:
            return means
        # a collection that was cleared is as old as the row before, one that goes on is older by what that was
        if duration <= max((time - earlier) / 1e6 + before / 2, before):
            return means
        self.cumulative = True
        window = duration - before
        since = {
            place: (mean * duration - known[place] * before) / window for place, mean in means.items() if place in known
        }
        return {place: _within(value, means[place]) for place, value in since.items()}


def _within(value: float, mean: float) -> float:
    """Return a value that fell below 0 by less than the error as 0."""
    return 0.0 if -_OVERSHOOT * abs(mean) - 1e-9 <= value < 0 else value

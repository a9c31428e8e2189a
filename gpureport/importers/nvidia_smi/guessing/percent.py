"""Which column of percentages is the utilisation of the GPU, which of its memory controller."""

import numpy as np

from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.said import Names, Said, doubtful, likely, listed, unnamed

_GPU, _MEMORY = "utilization.gpu", "utilization.memory"
_JUMP = 30
"""A utilisation goes from idle to busy between two rows, a fan needs seconds (pragmatic)."""
_SMOOTH = 5
"""Points a fan changes by from row to row at most (pragmatic)."""
_BUSY = 10
"""Below this many percent the display alone keeps the memory controller as busy as the GPU (genuine logs)."""
_NEARLY_ALL = 0.99
_FAN = "it changes as little as the speed of a fan does"


def name(columns: list[Facts]) -> Names:
    """Return what the columns of percentages are."""
    names: Names = {c.position: likely("fan.speed", "more than 100 %") for c in columns if c.most > 100}  # noqa: PLR2004 - per cent
    left = [column for column in columns if column.position not in names]
    live = [column for column in left if column.most > 0]
    if len(left) > 2:  # noqa: PLR2004 - utilisation of the GPU and of its memory controller
        if live and live == left[: len(live)] and len(live) <= 2:  # noqa: PLR2004 - as above
            names |= {column.position: unnamed("0 % throughout") for column in left[2:]}
            left = left[:2]
        else:
            return names | _undecided(left, "there are more columns of percentages than two")
    if len(left) == 1:
        names[left[0].position] = _alone(left[0])
    if len(left) == 2:  # noqa: PLR2004 - as above
        names |= _pair(*left)
    return names


def _alone(column: Facts) -> Said:
    if _like_fan(column):
        return doubtful(_GPU, "the only percentages", f"{listed([column.position])}: utilization or fan; {_FAN}")
    jumps = column.least == 0 and column.largest_step >= _JUMP
    return likely(_GPU, "the only percentages" + ("; they jump between idle and busy" if jumps else ""))


def _pair(first: Facts, second: Facts) -> Names:
    if _like_fan(first) or _like_fan(second):
        return _undecided([first, second], f"one may be a fan: {_FAN}")
    busy = np.fmax(first.values, second.values) >= _BUSY
    below = second.values[busy] <= first.values[busy]
    if len(below) and below.mean() < _NEARLY_ALL:
        return _undecided([first, second], "the second is often larger, which a memory controller's is not")
    support = "the second is never the larger one" if len(below) else "no row is busy, so nothing contradicts it"
    reason = f"percentages in nvidia-smi's usual order; {support}"
    return {first.position: likely(_GPU, reason), second.position: likely(_MEMORY, reason)}


def _like_fan(column: Facts) -> bool:
    if column.steady:
        return 0 < column.most < 100  # noqa: PLR2004 - a busy GPU stays at 100 %
    return column.least > 0 and column.largest_step <= _SMOOTH


def _undecided(columns: list[Facts], why: str) -> Names:
    places = listed(column.position for column in columns)
    doubt = f"{places}: which is {_GPU}, which {_MEMORY} or another percentage; {why}"
    fields = [_GPU, _MEMORY, *[""] * len(columns)]
    return {
        column.position: doubtful(field, "percentages in nvidia-smi's usual order", doubt)
        for column, field in zip(columns, fields, strict=False)
    }

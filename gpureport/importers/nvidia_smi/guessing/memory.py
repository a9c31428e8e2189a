"""Which column of MiB is the memory in all, which the used, the free and the reserved part of it."""

import numpy as np

from gpureport.columns import FloatArray
from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.said import (
    Confidence,
    Names,
    Said,
    doubtful,
    likely,
    listed,
    sure,
    unnamed,
)

_UNUSED = 20
"""MiB the driver holds on a GPU nobody uses (0 to 15 in genuine logs)."""
_RESERVED = 1024
"""MiB that may be neither used nor free: what the driver reserves (200 to 620 in genuine logs)."""
_ROUNDED = 8
"""MiB by which a sum may vary: every part is rounded up, and they are not read at the same moment."""
_IDLE, _LOADED = 10, 50
"""Per cent of utilisation at which a GPU is taken to do nothing, and to work."""
_SMALL, _CLEARLY = 0.1, 0.05
"""Share of the memory a GPU without work holds at most; by how much more a working one must (pragmatic)."""


_RISEN = 0.5
"""Share of its largest value at which memory in use begins, where the log begins before the run (pragmatic)."""


def name(columns: list[Facts], load: FloatArray | None) -> Names:
    """Return what the columns of MiB are.

    Args:
        columns: the columns.
        load: utilisation of each row in per cent, None where it is not known.
    """
    if len(columns) == 1:
        return {columns[0].position: _alone(columns[0], load)}
    total = _total(columns)
    if total is None:
        return _without_total(columns, load)
    names = {total.position: sure("memory.total", "the largest memory, and it never changes")}
    rest = [column for column in columns if column is not total]
    parts = [column for column in rest if not column.steady]
    if len(parts) == 2 and _constant(total, parts):  # noqa: PLR2004 - used and free
        return names | _used_and_free(parts[0], parts[1], load) | _kept(rest, parts)
    if len(parts) == 1:
        return names | {parts[0].position: _part(parts[0], total, load)} | _kept(rest, parts)
    if not parts:
        return _steady(total, rest)
    return _undecided(columns, "they do not add up")


def _alone(column: Facts, load: FloatArray | None) -> Said:
    if _unused_at_first(column, load):
        return sure("memory.used", "the only memory; it begins as small as on a GPU nobody uses")
    if column.present[0] <= _RISEN * column.most and not column.steady:
        return likely("memory.used", "the only memory; it begins low")
    doubt = f"{listed([column.position])}: memory used, free or in all; it does not begin low"
    return doubtful("memory.used", "the only memory", doubt)


def _total(columns: list[Facts]) -> Facts | None:
    """Return the column that never changes and is nowhere smaller than another."""
    for column in columns:
        others = [other.values for other in columns if other is not column]
        if column.steady and all((np.isnan(o) | np.isnan(column.values) | (o <= column.values)).all() for o in others):
            return column
    return None


def _constant(total: Facts, parts: list[Facts]) -> bool:
    """Return whether two parts make up the total but for what is reserved."""
    rest = total.values - parts[0].values - parts[1].values
    there = rest[~np.isnan(rest)]
    # a sample between two allocations may be off
    return bool(len(there) and ((there >= -_ROUNDED) & (there <= _RESERVED)).mean() >= 0.95)  # noqa: PLR2004 - nearly all


def _without_total(columns: list[Facts], load: FloatArray | None) -> Names:
    if len(columns) == 2 and not any(column.steady for column in columns):  # noqa: PLR2004 - used and free
        both = columns[0].values + columns[1].values
        if np.nanmax(both) - np.nanmin(both) <= _ROUNDED:
            return _used_and_free(columns[0], columns[1], load)
    return _undecided(columns, "none is the largest throughout, and they do not add up")


def _used_and_free(first: Facts, second: Facts, load: FloatArray | None) -> Names:
    whole = float(np.nanmax(first.values + second.values))
    for used, free in ((first, second), (second, first)):
        confidence, reason = _rising(used, whole, load)
        if confidence is not None and _rising(free, whole, load)[0] is None:
            said = sure if confidence == "high" else likely
            other = "what is left of the memory"
            return {used.position: said("memory.used", reason), free.position: said("memory.free", other)}
    return _undecided([first, second], "they add up, and nothing shows which is in use")


def _part(column: Facts, total: Facts, load: FloatArray | None) -> Said:
    """Return whether the one part of the memory that changes is the used or the free one."""
    whole = float(np.nanmax(total.values))
    confidence, reason = _rising(column, whole, load)
    if confidence is not None:
        return (sure if confidence == "high" else likely)("memory.used", reason)
    if load is not None and _grown(whole - column.values, whole, load):
        return likely("memory.free", "memory that shrinks as the GPU works")
    doubt = f"{listed([column.position])}: memory used or free"
    return doubtful("memory.used", "memory besides the whole", doubt)


def _rising(column: Facts, whole: float, load: FloatArray | None) -> tuple[Confidence | None, str]:
    """Return how sure it is that a column is the used memory, and why."""
    if _unused_at_first(column, load):
        return "high", "it begins as small as on a GPU nobody uses"
    if load is None:
        return None, ""
    if _grown(column.values, whole, load):
        return "medium", "memory that grows as the GPU works"
    first = float(column.present[0])
    if load[0] <= _IDLE and first <= _SMALL * whole:
        return "medium", "it begins small on an idle GPU"
    return None, ""


def _unused_at_first(column: Facts, load: FloatArray | None) -> bool:
    return bool(column.present[0] <= _UNUSED and (load is None or not load[0] > _IDLE))


def _grown(values: FloatArray, whole: float, load: FloatArray) -> bool:
    """Return whether a working GPU holds clearly more memory than an idle one."""
    idle, loaded = values[(load <= _IDLE) & ~np.isnan(values)], values[(load >= _LOADED) & ~np.isnan(values)]
    return bool(len(idle) and len(loaded) and loaded.mean() - idle.mean() > _CLEARLY * whole)


def _steady(total: Facts, rest: list[Facts]) -> Names:
    """Return what columns are of which none ever changes: only a GPU without any use is told."""
    used = [column for column in rest if column.least <= _UNUSED]
    free = [column for column in rest if column not in used]
    if len(used) == 1 and len(free) == 1 and _constant(total, rest):
        return {
            total.position: likely("memory.total", "the largest memory, and the others make it up"),
            used[0].position: likely("memory.used", "as small as on a GPU nobody uses"),
            free[0].position: likely("memory.free", "what is left of the memory"),
        }
    return _undecided([total, *rest], "none of them ever changes")


def _kept(columns: list[Facts], named: list[Facts]) -> Names:
    """Return that columns which never change besides those that do are kept as text."""
    return {c.position: unnamed("memory that never changes") for c in columns if c not in named}


def _undecided(columns: list[Facts], why: str) -> Names:
    places = listed(column.position for column in columns)
    doubt = f"{places}: which memory is used, free or in all; {why}"
    order = sorted(columns, key=lambda column: -column.most)
    fields = ["memory.total", "memory.used", "memory.free"] if len(columns) > 1 else ["memory.used"]
    padded = [*fields, *[""] * len(columns)]
    return {c.position: doubtful(f, "memory", doubt) for c, f in zip(order, padded, strict=False)}

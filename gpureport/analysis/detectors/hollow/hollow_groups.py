"""GPUs that were hollow at the same time for the same reason."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.hollow.hollow_causes import HollowSigns
from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowGroup:
    """GPUs that were hollow at the same time for the same reason, with what each rests on."""

    devices: tuple[str, ...]
    spans: Spans
    signs: tuple[HollowSigns, ...]
    cause: str | None

    def find_median_signs(self) -> HollowSigns:
        """Return the signs of the median GPU and episode by capacity used."""
        return sorted(self.signs, key=lambda each: each.compute_done_share())[len(self.signs) // 2]


def group_episodes(groups: Sequence[HollowGroup], together: float) -> list[HollowGroup]:
    """Join what happened to several GPUs at once, then what happened to the same GPUs for the same reason."""
    joined: list[HollowGroup] = []
    for one in groups:
        # by its place: groups hold arrays, and cannot be looked up by what they are equal to
        alike = (each.cause == one.cause and _happen_together(each, one, together) for each in joined)
        place = next((place for place, near in enumerate(alike) if near), None)
        if place is None:
            joined.append(one)
        else:
            joined[place] = _merge_groups(joined[place], one)
    merged: dict[tuple[tuple[str, ...], str | None], HollowGroup] = {}
    for one in joined:
        key = (one.devices, one.cause)
        merged[key] = _merge_groups(merged[key], one) if key in merged else one
    return list(merged.values())


def _happen_together(one: HollowGroup, other: HollowGroup, together: float) -> bool:
    if one.spans[0, 0] >= other.spans[-1, 1] or other.spans[0, 0] >= one.spans[-1, 1]:
        # most are: far apart, they share no time
        return False
    if set(one.devices) & set(other.devices):
        return False
    shared = intervals.total_seconds(intervals.intersection(one.spans, other.spans))
    either = intervals.total_seconds(intervals.union(np.concatenate([one.spans, other.spans])))
    return shared >= together * either


def _merge_groups(one: HollowGroup, other: HollowGroup) -> HollowGroup:
    return HollowGroup(
        devices=tuple(dict.fromkeys((*one.devices, *other.devices))),
        spans=intervals.union(np.concatenate([one.spans, other.spans])),
        signs=(*one.signs, *other.signs),
        cause=one.cause,
    )

"""Causes of hollow work: a hung collective, a wait for a slower peer, or kernels too small to fill the GPU."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.hollow.hollow_episodes import DRAM, SM, STILL
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.stretch_means import average_stretches, find_stretch_rows
from gpureport.analysis.signals.load import COPYING, RECEIVED, SENT
from gpureport.analysis.signals.power_of_limit import PowerOfLimit
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray

KEEPS_GPU_WAITING = pragmatic(
    1e10, "By/s", "an H100 that copied from pinned memory for 70% of its time received 4.2e10; training on images < 1e9"
)
"""Data a second from which a GPU that does little and sends less than half as much waits for copies."""

CONTROLLER = "gpu_memory_controller_ratio"
TENSOR = "gpu_tensor_active_ratio"
CORE = "cpu_busiest_core_ratio"
HANG, STRAGGLER, LAUNCH = "hang", "straggler", "launch-bound"


MOVED = 0.02  # kernels that compute read and write more
"""Memory traffic up to which nothing is computed on data."""
PEGGED = 0.96  # a rank that polls keeps a core full
"""Load of the busiest core from which a rank spins."""
DEAD = 0.05  # a GPU at this utilisation does not take part
"""Utilisation up to which a peer does nothing."""
HARD = 0.5  # power of a GPU that the others may be waiting for
"""Power above idle, of what the limit leaves, from which a peer works hard."""
TOGETHER = 0.8  # share of the stretch; ranks enter a collective seconds apart
"""Share of the time in which others must be hollow as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowSigns:
    """Means of one GPU over its episodes, NaN where not recorded, and its peers that stand out.

    Attributes:
        power_share: power above idle, of what the limit leaves.
        active: activity of the multiprocessors.
        tensor: activity of the tensor cores.
        memory_traffic: memory traffic: DRAM activity, else the share of time memory was accessed.
        busiest_core_load: load of the busiest core of its node, the median.
        dead_peers: GPUs of the job that did nothing at the time.
        working_peers: GPUs of the job that worked hard at the time.
        has_hollow_peers: whether other GPUs of the job were hollow at the time.
        received: bytes a second that came over PCIe.
        sent: those that went the other way.
    """

    power_share: float
    active: float
    tensor: float
    memory_traffic: float
    busiest_core_load: float
    dead_peers: tuple[str, ...]
    working_peers: tuple[str, ...]
    has_hollow_peers: bool
    received: float
    sent: float

    def compute_done_share(self) -> float:
        """Return how much of its capacity the GPU used: its activity if recorded, else its power."""
        return min(max(self.power_share if np.isnan(self.active) else self.active, 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSigns:
    """What is seen on the other GPUs of the job during an episode of one."""

    dead: tuple[str, ...]
    working: tuple[str, ...]
    hollow_seconds: float


def find_peer_signs(
    context: Context, episodes: Mapping[str, Spans], scales: Mapping[str, PowerOfLimit | None]
) -> Iterator[PeerSigns]:
    """Yield what is seen on the other GPUs during each episode, GPU by GPU: each is looked at for all of them at once.

    Args:
        context: the recording.
        episodes: episodes of every GPU by device id.
        scales: its power scale, likewise.
    """
    owners = np.repeat(np.array(list(episodes), dtype=np.str_), [len(spans) for spans in episodes.values()])
    starts, ends = np.concatenate([intervals.NO_SPANS, *episodes.values()]).T
    dead: list[list[str]] = [[] for _ in owners]
    working: list[list[str]] = [[] for _ in owners]
    hollow = np.zeros(len(owners))
    for name in context.active if len(owners) else ():
        series, scale = context.series[name], scales[name]
        others = np.flatnonzero(owners != name)
        first, stop = find_stretch_rows(series, starts[others], ends[others])
        for place in others[average_stretches(series.values(UTILISATION), first, stop) <= DEAD].tolist():
            dead[place].append(name)
        if scale is not None:
            for place in others[average_stretches(scale.share, first, stop) >= HARD].tolist():
                working[place].append(name)
        shared = intervals.overlap_seconds(starts[others], ends[others], episodes[name])
        hollow[others] = np.maximum(hollow[others], shared)
    for still, hard, seconds in zip(dead, working, hollow.tolist(), strict=True):
        yield PeerSigns(dead=tuple(still), working=tuple(hard), hollow_seconds=seconds)


def measure_signs(
    context: Context, device: str, spans: Spans, scale: PowerOfLimit | None, peers: PeerSigns
) -> HollowSigns:
    """Return the signs in the series of one GPU and its peers during an episode."""
    series = context.series[device]
    dram = _average_inside(series, DRAM, spans)
    share = np.full(len(series), np.nan) if scale is None else scale.share
    first, stop = find_stretch_rows(series, spans[:, 0], spans[:, 1])
    return HollowSigns(
        power_share=_average(share[int(first[0]) : int(stop[0])]),
        active=_average_inside(series, SM, spans),
        tensor=_average_inside(series, TENSOR, spans),
        memory_traffic=_average_inside(series, CONTROLLER, spans) if np.isnan(dram) else dram,
        busiest_core_load=_find_busiest_core_load(context, series, spans),
        dead_peers=peers.dead,
        working_peers=peers.working,
        has_hollow_peers=peers.hollow_seconds >= TOGETHER * intervals.total_seconds(spans),
        received=_average_inside(series, RECEIVED, spans),
        sent=_average_inside(series, SENT, spans),
    )


def name_cause(signs: HollowSigns) -> str | None:
    """Return the cause in a word, None if it may be a hang or kernels that do next to nothing."""
    if signs.dead_peers:
        return HANG
    if signs.working_peers:
        return STRAGGLER
    if signs.received >= KEEPS_GPU_WAITING.value and signs.sent <= signs.received / 2:
        return COPYING
    computing = signs.memory_traffic > MOVED or signs.tensor > MOVED
    waiting = signs.power_share < STILL or signs.memory_traffic <= MOVED
    if computing or not waiting:
        return LAUNCH
    # one GPU that replays a CUDA graph of tiny kernels looks the same, its core full as well (measured on an H100)
    is_core_free = signs.busiest_core_load < PEGGED
    return HANG if signs.has_hollow_peers and not is_core_free else None


def find_rows_inside(series: DeviceSeries, spans: Spans) -> BoolArray:
    """Return the rows whose values speak of moments inside the stretches."""
    return intervals.contains(spans, series.times - series.shift)


def _average_inside(series: DeviceSeries, metric: str, spans: Spans) -> float:
    return _average(series.find_values(metric, spans))


def _average(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _find_busiest_core_load(context: Context, series: DeviceSeries, spans: Spans) -> float:
    """Return the median load of the busiest core of the node, NaN where it was not recorded."""
    for host in context.hosts().values():
        if host.device.node in {None, series.device.node}:
            values = host.find_values(CORE, spans)
            if len(values):
                return float(np.median(values))
    return float("nan")

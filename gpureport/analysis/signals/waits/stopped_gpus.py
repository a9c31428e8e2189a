"""GPUs that stopped for good while others worked on, and whether the host can be why."""

from collections.abc import Mapping

import numpy as np

from gpureport.analysis.job.phases import SHORTEST_GAP, UTILISATION
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.waits import waiting_gpus
from gpureport.analysis.signals.waits.wait_episodes import FEWEST_FED_BINS, is_surely_higher
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.columns import FloatArray
from gpureport.findings import Interval


def leave_out_stopped_gpus(  # noqa: PLR0913 - when GPUs worked, and two limits
    candidate: WaitCandidate,
    series: FloatArray,
    active: Mapping[str, Interval],
    window: Interval,
    *,
    fed_level: float,
    least_difference: float,
) -> WaitCandidate:
    """Return a candidate without the GPUs that a host cannot have stopped.

    Such a GPU never came back while another one worked on, was well fed until then, and the host was no busier
    afterwards: it worked beside the same load.

    Args:
        candidate: the host and the GPUs that may wait for it.
        series: what the GPUs may wait for, a value a bin.
        active: from the first to the last work of each GPU, keyed by device id.
        window: from the first to the last work of any.
        fed_level: mean utilisation from which a GPU is well fed.
        least_difference: means that differ by less are one level.
    """

    def is_stopped(name: str, gpu: DeviceSeries) -> bool:
        own = active[name]
        if window.end - own.end < SHORTEST_GAP.value * 1e6:
            return False
        before = candidate.bins.find_bin_slice(own.start, own.end)
        after = candidate.bins.find_bin_slice(own.end, window.end)
        used = candidate.bins.average_metric(gpu, UTILISATION)[before]
        known = used[~np.isnan(used)]
        earlier = series[before][~np.isnan(series[before])]
        if min(len(known), len(earlier)) < FEWEST_FED_BINS or known.mean() < fed_level:
            return False
        return not is_surely_higher(series[after], earlier, least_difference)

    left = {name: gpu for name, gpu in candidate.gpus.items() if not is_stopped(name, gpu)}
    if len(left) == len(candidate.gpus):
        return candidate
    return waiting_gpus.build_candidate(window, candidate.source, left)

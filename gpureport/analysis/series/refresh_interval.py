"""How often the driver gives utilisation a new value, by NVIDIA's documents: rows in between repeat a reading."""

from gpureport import gpus

SHORTEST = 1 / 6  # s; NVML, nvmlDeviceGetUtilizationRates: the sample period is between 1/6 and 1 s
"""Shortest time that a utilisation value covers."""

RESOLVED = 1.8  # a reading seen twice, with room for jitter; below, rows may skip readings
"""Intervals between samples that a period spans where rows repeat readings."""

_AVERAGED = ("gpu_utilization_ratio", "gpu_memory_controller_ratio")


def look_up_documented_period(metric: str, model: str | None) -> float | None:
    """Return the shortest time that a value of a metric covers by NVIDIA's documents, None if they do not say.

    Args:
        metric: column name.
        model: name of the GPU.
    """
    if metric not in _AVERAGED:
        return None
    known = gpus.find_gpu(model)
    window = known.utilisation_window_seconds if known else None
    return window.value if window else SHORTEST

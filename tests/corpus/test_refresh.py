"""Refresh periods of genuine logs: what their drivers do, as the changes of their values tell."""

import pytest

from gpureport import read
from gpureport.testing import MetricSummary, analyze
from tests.genuine import CORPUS, needs_corpus

pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
H100 = "yqg9651-cuda_test__fp8_e4m3_bf16_fast_mode_maxpower.csv"
A100 = "yqg9651-cuda_test__burst_fp16_half_random.csv"
H800_SLOW = "yqg9651-cuda_test__random_gemm_fp16_half.csv"
RTX_3090 = "JimZeyuYang-GPU_Power_Benchmark__gpudata.csv"
SHORT = "JimZeyuYang-GPU_Power_Benchmark__gpudata_0a7668.csv"
RTX_4090 = "JimZeyuYang-GPU_Power_Benchmark__gpudata_dc1b7f.csv"
LAPTOP = "DarshEllisd-GPU-Power-Capping-__clk525_r1_20260419_113554_power.csv"
A100_100_MS = "grantwilkins-energy-inference__nvidia-smi_612561.csv"
UTILISATION, POWER, INSTANT = "gpu_utilization_ratio", "gpu_power_watts", "gpu_power_instant_watts"


def summary(log: str, metric: str) -> MetricSummary:
    """Return the figures of one metric of the first GPU of a log."""
    (recording,) = read(CORPUS / "corpus" / log)
    found = analyze(recording).statistics[0].metric(metric)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("log", "metric", "seconds"),
    [
        (H100, UTILISATION, 0.198),
        (H100, POWER, 0.100),
        (H100, INSTANT, 0.100),
        (A100, UTILISATION, 0.210),
        (A100, POWER, 0.101),
        (RTX_3090, UTILISATION, 0.197),
        (RTX_3090, POWER, 0.100),
        (RTX_3090, INSTANT, 0.100),
        (SHORT, UTILISATION, 0.203),
        (SHORT, POWER, 0.102),
        (RTX_4090, POWER, 0.100),
        (LAPTOP, POWER, 0.506),
        (LAPTOP, "gpu_memory_controller_ratio", 0.999),
        (A100_100_MS, UTILISATION, 0.210),
    ],
)
def test_the_period_of_a_fast_log(log: str, metric: str, seconds: float) -> None:
    """Measured periods, with the readings that fit into the time."""
    figures = summary(log, metric)
    assert figures.refresh_seconds == pytest.approx(seconds, abs=0.0015)
    assert figures.effective_samples == pytest.approx(figures.seconds / seconds, rel=0.02)
    assert figures.changes < figures.effective_samples < figures.samples


@pytest.mark.parametrize(
    ("log", "metric"),
    [
        (H800_SLOW, UTILISATION),
        (H800_SLOW, POWER),
        (A100_100_MS, POWER),
        (RTX_4090, UTILISATION),
        (LAPTOP, UTILISATION),
        (H100, "gpu_temperature_celsius"),
        (H100, "gpu_memory_temperature_celsius"),
        (H100, "gpu_sm_clock_hertz"),
        (RTX_3090, "gpu_temperature_celsius"),
        (RTX_3090, "gpu_sm_clock_hertz"),
    ],
)
def test_what_a_log_does_not_tell(log: str, metric: str) -> None:
    """Sampled too slowly, hardly ever changed, or changed at any time: no period is claimed."""
    assert summary(log, metric).refresh_seconds is None


def test_a_utilisation_that_never_changed() -> None:
    """A laptop at 100 % throughout: `utilization.memory` tells how often both are read."""
    figures = summary(LAPTOP, UTILISATION)
    assert (figures.changes, figures.samples, figures.effective_samples) == (3, 2743, 302)


def test_rows_of_a_millisecond_log_are_not_readings() -> None:
    """The share of rows that repeat the one before."""
    for log, metric, share in ((H100, POWER, 0.923), (RTX_3090, POWER, 0.934), (A100, POWER, 0.848)):
        assert summary(log, metric).repeated_ratio == pytest.approx(share, abs=0.001)

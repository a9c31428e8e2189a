"""A headline for each kind of finding: a sentence in the present tense, from the evidence alone."""

from dataclasses import replace

import pytest

from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.headlines.finding_headlines import describe_finding, find_worst
from gpureport.report.wording.headlines import LONGEST, count_words
from gpureport.testing import Confidence, Evidence, Finding, GpuTime, Interval, Severity, TimePart
from tests.report import examples

RATIO = "1"


def seen(metric: str, statistic: str, observed: float, unit: str = RATIO) -> Evidence:
    """Return a piece of evidence without a limit."""
    return Evidence(metric=metric, statistic=statistic, observed=observed, unit=unit)


def finding(  # noqa: PLR0913 - each argument is a field a test sets
    kind: str,
    *evidence: Evidence,
    devices: tuple[str, ...] = ("gpu:0",),
    cause: str | None = None,
    span: tuple[float, float] | None = (100, 190),
    severity: Severity = Severity.PROBLEM,
    lost: float | None = None,
) -> Finding:
    """Return a finding."""
    return Finding(
        kind=kind,
        severity=severity,
        confidence=Confidence.HIGH,
        devices=devices,
        intervals=() if span is None else (Interval(examples.at(span[0]), examples.at(span[1])),),
        evidence=evidence,
        lost_gpu_seconds=lost,
        summary="",
        recommendation="",
        cause=cause,
    )


def headline(*findings: Finding, gpus: int = 2) -> str:
    """Return the headline of a run of ten minutes with some findings; empty where all is well."""
    recording, analysis = examples.pair(examples.run(gpus=gpus), findings)
    worst = find_worst([ReportRun(label="a", step="a", recording=recording, analysis=analysis)])
    text = describe_finding(worst) if worst else ""
    assert count_words(text) <= LONGEST + text.count("%")
    return text.replace("%", "%").replace("\N{NO-BREAK SPACE}", " ")


HOST = tuple(seen(name, "mean", 0.1) for name in ("cpu_iowait_ratio", "cpu_busiest_core_ratio"))
UTIL, CLOCK, MEMORY = "gpu_utilization_ratio", "gpu_sm_clock_hertz", "gpu_memory_used_bytes"
BOTH = ("gpu:0", "gpu:1")
FALL = seen(CLOCK, "mean, of that of other busy samples", 0.88)
HOT = seen("gpu_temperature_celsius", "max", 88.0, "Cel")
GAPS = seen("idle time of this GPU in gaps", "share of the job", 0.29)
BUSY = seen(UTIL, "mean", 0.42)
END = seen("duration", "share of the run", 0.15)
CASES = [
    (finding("thermal_throttle", HOT, FALL), "GPU 0 overheats: 88 °C, clock down 12% for 1 min 30 s."),
    (finding("thermal_throttle"), "GPU 0 overheats: slowed for 1 min 30 s."),
    (finding("thermal_throttle", HOT, devices=BOTH), "Both GPUs overheat: 88 °C, slowed for 1 min 30 s."),
    (
        finding("hw_throttle", FALL, cause="power brake"),
        "A power brake cuts the clock of GPU 0 by 12% for 1 min 30 s.",
    ),
    (finding("hw_throttle", cause="hardware"), "The hardware lowers the clock of GPU 0 for 1 min 30 s."),
    (
        finding("power_limited", seen("gpu_power_limit_watts", "median, of the default", 0.6)),
        "GPU 0 is capped at 60% of the default power limit.",
    ),
    (
        finding("clocks_locked", seen(CLOCK, "median while busy, of the highest", 0.78)),
        "The clock of GPU 0 is locked at 78% of the maximum.",
    ),
    (finding("gpu_lost", cause="lost", span=(500, 600)), "GPU 0 stops responding 1 min 40 s before the end."),
    (finding("gpu_lost", cause="lost", devices=(), span=None), "A GPU stops responding."),
    (finding("gpu_lost", cause="no answer", span=(300, 400)), "GPU 0 stops responding."),
    (finding("gpu_lost", cause="xid"), "The driver reports errors of GPU 0."),
    (
        finding("ecc_error", seen("gpu_ecc_uncorrected_total", "rise in the run", 1.0, ""), cause="uncorrected"),
        "GPU 0 has 1 uncorrectable memory error.",
    ),
    (finding("ecc_error", cause="uncorrected"), "GPU 0 needs repair: a row of memory can't be remapped."),
    (
        finding("pcie_degraded", seen("data rate of the link", "of the highest", 0.25)),
        "The PCIe link of GPU 0 runs at 25% of its speed.",
    ),
    (finding("mem_pressure"), "The memory of GPU 0 is nearly full."),
    (
        finding(
            "mem_leak",
            seen(MEMORY, "growth a second", 2**30 / 60, "By/s"),
            seen("time until memory is full", "at this rate", 1324.0, "s"),
        ),
        "GPU 0's memory grows by 1.0 GiB a minute; it fills up in 22 min.",
    ),
    (
        finding("host_memory_pressure", seen("host_memory_used_ratio", "p95 while GPUs wait", 0.93), devices=("host",)),
        "Host memory is 93% full while GPUs wait.",
    ),
    (
        finding(
            "zombie_memory",
            seen("time without work", "to the last sample", 239.0, "s"),
            seen(MEMORY, "last", 60 * 2.0**30, "By"),
        ),
        "GPU 0 still holds 60.0 GiB 3 min 59 s after the last work.",
    ),
    (
        finding("idle_gap", GAPS, cause="unknown"),
        "GPU 0 sits idle for 29% of the job; the log doesn't show why.",
    ),
    (
        finding("idle_gap", GAPS, cause="checkpoint", devices=BOTH),
        "Both GPUs sit idle for 29% of the job while the host writes to disk.",
    ),
    (finding("idle_gap", cause="requests or input"), "GPU 0 sits idle for 1 min 30 s."),
    (
        finding(
            "periodic_stall",
            seen("period", "mean distance of starts", 93.0, "s"),
            seen("idle time", "mean of one period", 13.0, "s"),
            seen("idle time", "share of the job", 0.14),
        ),
        "GPU 0 stalls every 1 min 33 s for 13 s: 14% of the job.",
    ),
    (finding("startup_idle", END, devices=()), "The first work comes after 1 min 30 s, 15% of the run."),
    (
        finding("startup_idle", END, devices=("gpu:1",)),
        "The first work of GPU 1 comes after 1 min 30 s, 15% of the run.",
    ),
    (
        finding("startup_idle", devices=(), cause="no work", span=(0, 600)),
        "Both GPUs do no sustained work in 10 min.",
    ),
    (finding("tail_idle", devices=()), "Both GPUs idle 1 min 30 s after the last work."),
    (finding("tail_idle", devices=(), lost=180.0), "Both GPUs idle 1 min 30 s after the last work, 15% of their time."),
    (finding("unused_gpu", lost=600.0), "GPU 0 never works: 50% of the GPU time goes unused."),
    (
        finding("log_gap", seen("time without samples", "sum", 65.0, "s"), devices=(), severity=Severity.WARNING),
        "1 min 5 s of the log is missing, 11% of the run.",
    ),
    (
        finding("monitoring_ended", seen("time without samples at the end", "length", 215.0, "s")),
        "The GPU log stops 3 min 35 s before the host log.",
    ),
    (
        finding(
            "no_progress", seen("time after the best value", "share of the job", 0.5), seen("val_loss", "best", 1.2, "")
        ),
        "No progress: val_loss doesn't improve in the last 50% of the job.",
    ),
    (finding("cpu_bound", BUSY), "GPU 0 waits for data: 42% busy, while the CPU is saturated."),
    (finding("cpu_bound_single", BUSY), "GPU 0 waits for data: 42% busy, while one CPU core is saturated."),
    (finding("io_bound", BUSY), "GPU 0 waits for data: 42% busy, while the host waits for storage."),
    (
        finding("transfer_bound", BUSY, seen("PCIe traffic", "mean of the busier direction", 0.74)),
        "GPU 0 waits for copies: 42% busy, while copies use 74% of the PCIe bandwidth.",
    ),
    (
        finding("underutilised", BUSY, *HOST),
        "GPU 0 is only 42% busy; neither CPU nor storage is the bottleneck.",
    ),
    (finding("underutilised", BUSY, devices=BOTH), "Both GPUs are only 42% busy; the CPU as a whole is not saturated."),
    (finding("low_util_cause_unknown", BUSY), "GPU 0 is only 42% busy for 1 min 30 s; the log doesn't show why."),
    (finding("hollow_util", cause="hang"), "GPU 0 looks busy at near-idle power for 1 min 30 s."),
    (
        finding("imbalance", BUSY, seen(UTIL, "median of the means of its peers", 0.96), cause="utilisation"),
        "GPU 0 is only 42% busy, the others 96%.",
    ),
    (
        finding(
            "imbalance",
            seen("gpu_power_watts", "mean", 200.0, "W"),
            seen("gpu_power_watts", "median of the means of its peers", 300.0, "W"),
            cause="power",
        ),
        "GPU 0 draws 200 W, the others 300 W, equally busy.",
    ),
    (finding("of_a_plug_in", lost=120.0), "Of a plug in, GPU 0: 10% of the GPU time lost."),
]


@pytest.mark.parametrize(("found", "text"), CASES, ids=range(len(CASES)))
def test_every_kind_has_a_headline(found: Finding, text: str) -> None:
    """What the evidence lacks is left out, never made up."""
    assert headline(found) == text


def test_full_memory_says_what_is_left() -> None:
    """By the peak and its share of what is installed, less what the driver keeps."""
    full = finding("mem_pressure", seen(MEMORY, "max, of installed less reserved memory", 0.97))
    recording, analysis = examples.pair(examples.run(gpus=1), (full,))
    peak = tuple(replace(each, memory_peak_bytes=77 * 2**30) for each in analysis.statistics)
    run = ReportRun(label="a", step="a", recording=recording, analysis=replace(analysis, statistics=peak))
    worst = find_worst([run])
    assert worst is not None
    text = describe_finding(worst).replace("\N{NO-BREAK SPACE}", " ")
    assert text.replace(" %", "%").startswith("GPU memory is 97% full: only 2.4 GiB left.")


def test_the_worst_is_the_gravest_then_the_dearest() -> None:
    """Severity counts before GPU time; what follows from another finding and mere facts do not count."""
    brake = finding("hw_throttle", cause="hardware", lost=10.0)
    heat = finding("thermal_throttle", lost=20.0)
    start = finding("startup_idle", END, devices=(), severity=Severity.WARNING, lost=500.0)
    assert headline(brake, heat, start).startswith("GPU 0 overheats")
    assert headline(start, brake).startswith("The hardware")
    follower = replace(finding("idle_gap", cause="hang", lost=900.0), root=heat.fingerprint)
    assert headline(heat, follower).startswith("GPU 0 overheats")
    assert not headline(finding("mem_headroom", severity=Severity.INFO))


@pytest.mark.parametrize(("lost", "told"), [(300.0, True), (30.0, False)])
def test_a_fact_that_takes_a_tenth_of_the_run_is_told(lost: float, told: bool) -> None:  # noqa: FBT001 - a parameter
    """A start-up of a few per cent is a fact of every run."""
    start = finding("startup_idle", END, devices=(), severity=Severity.INFO, lost=lost)
    assert bool(headline(start)) is told


def test_a_hang_names_the_gpu_that_stands_still() -> None:
    """It is the finding that follows from the busy ones."""
    hang = finding("hollow_util", devices=BOTH, cause="hang")
    still = replace(finding("idle_gap", cause="hang", devices=("gpu:2",)), root=hang.fingerprint)
    assert headline(hang, still, gpus=3) == "GPUs 0 and 1 look busy at near-idle power; GPU 2 stands still."


RANGES = [
    (
        "idle_gap",
        "idle time of this GPU in gaps",
        "share of the job",
        (0.27, 0.52),
        "Both GPUs sit idle for 27 to 52% of the job.",
    ),
    (
        "thermal_throttle",
        "gpu_temperature_celsius",
        "max",
        (92.0, 88.0),
        "Both GPUs overheat: 88 to 92 °C, slowed for 1 min 30 s.",
    ),
    (
        "power_limited",
        "gpu_power_limit_watts",
        "median, of the default",
        (0.5, 0.6),
        "Both GPUs are capped at 50 to 60% of the default power limit.",
    ),
    (
        "pcie_degraded",
        "data rate of the link",
        "of the highest",
        (0.25, 0.5),
        "The PCIe link of both GPUs runs at 25 to 50% of its speed.",
    ),
    (
        "mem_pressure",
        MEMORY,
        "max, of installed",
        (0.93, 0.97),
        "The memory of both GPUs is 93 to 97% full: only 1.2 GiB left.",
    ),
    (
        "zombie_memory",
        MEMORY,
        "last",
        (8 * 2.0**30, 4 * 2.0**30),
        "Both GPUs still hold 4.0 to 8.0 GiB after the last work.",
    ),
    ("imbalance", UTIL, "mean", (0.2, 0.3), "Both GPUs work unlike the others."),
    (
        "periodic_stall",
        "idle time",
        "share of the job",
        (0.1, 0.14),
        "Both GPUs stall again and again: 10 to 14% of the job.",
    ),
]


@pytest.mark.parametrize(("kind", "metric", "statistic", "values", "text"), RANGES, ids=[case[0] for case in RANGES])
def test_gpus_that_differ_are_given_a_range(
    kind: str, metric: str, statistic: str, values: tuple[float, float], text: str
) -> None:
    """The value of the worst GPU is not stated of all of them."""
    own = [
        finding(kind, seen(metric, statistic, value), devices=(f"gpu:{place}",), lost=100.0 - place)
        for place, value in enumerate(values)
    ]
    assert headline(*own) == text


def test_idle_gaps_of_gpus_that_differ_have_a_range_of_their_bars() -> None:
    """Headline and bars agree of each GPU, not of the worst alone."""
    gaps = [
        finding("idle_gap", GAPS, devices=(f"gpu:{place}",), cause="unknown", lost=lost)
        for place, lost in enumerate((300.0, 120.0))
    ]
    recording, analysis = examples.pair(examples.run(gpus=2), tuple(gaps))
    times = [
        GpuTime(
            device=f"gpu:{place}",
            seconds=(("idle", lost), ("computing", 600.0 - lost)),
            parts=(TimePart(name="idle", cause="unknown", seconds=lost),),
        )
        for place, lost in enumerate((300.0, 120.0))
    ]
    run = ReportRun(label="a", step="a", recording=recording, analysis=replace(analysis, gpu_time=tuple(times)))
    worst = find_worst([run])
    assert worst is not None
    text = describe_finding(worst)
    assert text == "Both GPUs sit idle for 20 to 50% of their time; the log doesn't show why."


def test_the_idle_end_of_some_gpus_is_a_share_of_all_gpu_time() -> None:
    """What is lost is divided by the time of all GPUs, and said so."""
    end = finding("tail_idle", devices=("gpu:1",), lost=60.0)
    assert headline(end) == "GPU 1 idles 1 min 30 s after the last work, 5.0% of the GPU time."


def test_memory_errors_of_all_gpus_named_are_counted() -> None:
    """The count is that of the GPUs the sentence names."""
    own = [
        finding("ecc_error", seen("gpu_ecc_uncorrected_total", "rise in the run", count, ""), devices=(name,))
        for name, count in zip(BOTH, (1.0, 2.0), strict=True)
    ]
    assert headline(*own) == "Both GPUs have 3 uncorrectable memory errors."

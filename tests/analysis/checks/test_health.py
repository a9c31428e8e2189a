"""GPUs that are lost, memory errors, slow links, and logs with gaps or an early end."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import (
    AbsentCells,
    Recording,
    analyze,
    findings_of,
    steps,
    with_host,
    with_quality,
    with_training,
)
from tests.analysis.tables import Table, check, rec, want
from tests.support.runs import event

UTIL = steps((97, 100))
GONE, THERE = np.concatenate([steps((97, 60)), np.full(60, np.nan)]), steps((97, 120))
LONG = steps((97, 300))


def with_errors(**counters: Any) -> Recording:
    return rec(util=UTIL, **counters)


def test_memory_errors() -> None:
    once = np.full(100, np.nan)
    once[3] = 4
    hole = np.concatenate([steps((0, 40)), np.full(20, np.nan), steps((1, 40))])
    rise = steps((0, 60), (1, 40))
    counters = {"none": steps((0, 100)), "of an earlier job": steps((7, 100)), "a reset": steps((7, 50), (0, 50))}
    check("ecc_error", {name: with_errors(uncorrected=one, corrected=one) for name, one in counters.items()})
    table: Table = {
        "uncorrected": want(
            with_errors(uncorrected=steps((0, 60), (2, 40))),
            gpus="0",
            severity="problem",
            cause="uncorrected",
            spans=[(59, 60)],
            within=0.01,
        ),
        "corrected": want(
            with_errors(corrected=np.arange(100.0) // 30), severity="info", spans=[(29, 30), (59, 60), (89, 90)]
        ),
        "over a hole": want(with_errors(uncorrected=hole), spans=[(39, 60)], within=0.01),
        "a row that waits for a reset": want(with_errors(remapped=rise, remap_pending=rise), severity="problem"),
        "a failed remapping": want(with_errors(remapped=0, remap_failure=rise), severity="problem"),
        "one of two GPUs": want(
            rec(util=[UTIL, UTIL], uncorrected=[steps((0, 100)), steps((0, 50), (1, 50))]), gpus="1"
        ),
        "failed before": with_errors(remapped=0, remap_failure=1),
        "no counters": (rec(util=UTIL), "not_recorded", "gpu_ecc_uncorrected_total"),
        "read once": (with_errors(uncorrected=once), "read_only_once", "gpu_ecc_uncorrected_total"),
    }
    check("ecc_error", table)


def at_addresses(run: Recording) -> Recording:
    gpus = [replace(gpu, bus_id=f"00000000:{0x18 + (gpu.index or 0):02X}:00.0") for gpu in run.run.gpus]
    return replace(run, run=replace(run.run, devices=tuple(gpus)))


def told(
    run: Recording, text: str, kind: str = "gpu_lost", seconds: float = 59, device: str | None = None
) -> Recording:
    return with_quality(run, log_events=(event(kind, seconds, text, device=device),))


def test_lost_gpus() -> None:
    back = np.concatenate([steps((97, 40)), np.full(20, np.nan), steps((97, 60))])
    handle = "Unable to determine the device handle for GPU 0000:19:00.0: GPU is lost.  Reboot the system to recover"
    xids = {
        "79": ("NVRM: Xid (PCI:0000:18:00): 79, pid=1234, GPU has fallen off the bus.", "lost", "problem"),
        "31": ("NVRM: Xid (PCI:0000:18:00): 31, pid=1234, MMU Fault", "xid", "problem"),
        "63": ("NVRM: Xid (PCI:0000:18:00): 63, Row Remapper: New row marked for remapping", "xid", "warning"),
        "48": ("NVRM: Xid 48", "xid", "problem"),
    }
    two = rec(util=[THERE, GONE])
    never = [THERE, np.full(120, np.nan)]
    flickers = np.where(np.isin(np.arange(120) // 20, [2, 4]), np.nan, 97.0)
    table: Table = {
        "errs in all but memory": want(
            told(rec(util=never, power=never, memory=[[9], [0]]), "[ERR!]", seconds=0, device="gpu:1"),
            gpus="1",
            summary='GPU 1 never answered: the log has "ERR!" in place of its values.',
            spans=[(0, 119)],
        ),
        "of which memory alone was recorded": want(
            told(rec(memory=[THERE / 10, GONE / 10]), "[GPU is lost]", seconds=60, device="gpu:1"), spans=[(60, 119)]
        ),
        "errs twice": want(
            told(rec(util=[THERE, flickers]), "[ERR!]", seconds=40, device="gpu:1"),
            spans=[(40, 60), (80, 100)],
            lost=40,
        ),
        "a message that fits the silent one": want(
            told(rec(util=[THERE, GONE], power=[THERE, GONE]), "GPU is lost"), gpus="1", cause="no answer"
        ),
        "named in a cell": want(
            told(two, "[GPU is lost]", seconds=60, device="gpu:1"),
            gpus="1",
            severity="problem",
            confidence="high",
            spans=[(60, 119)],
            lost=59,
        ),
        "by its address": want(told(at_addresses(two), handle), gpus="1"),
        "the only one": want(told(rec(util=GONE), "GPU is lost"), gpus="0"),
        "one of two": want(told(rec(util=[THERE, THERE]), "GPU is lost"), gpus="", lost=None),
        "that comes back": want(told(rec(util=back), "[GPU is lost]", seconds=40, device="gpu:0"), lost=20),
        **{
            f"Xid {name}": (
                told(at_addresses(rec(util=THERE)), text, "driver_message", 60),
                [want(gpus="0", cause=cause, severity=severity)],
            )
            for name, (text, cause, severity) in xids.items()
        },
        "errors in one column": want(
            with_quality(
                rec(util=[THERE, THERE], power=[GONE, THERE]),
                absent_cells=(AbsentCells(column="power.draw", reason="Unknown Error", cells=60),),
            ),
            gpus="0",
            cause="sensor",
            severity="warning",
            spans=[],
        ),
        "a change of the last Xid": want(rec(util=THERE, xid=steps((0, 60), (74, 60))), spans=[(60, 119)]),
        "rows without any value": want(
            rec(util=[THERE, GONE], power=[THERE, GONE]),
            gpus="1",
            confidence="medium",
            cause="no answer",
            spans=[(59, 119)],
        ),
        "an Xid of an earlier job": rec(util=THERE, xid=steps((74, 120))),
        "one metric": rec(util=GONE, power=THERE),
        "a hole in the middle": rec(util=np.concatenate([steps((97, 20)), np.full(60, np.nan), steps((97, 40))])),
        "another message": told(rec(util=THERE), "NVML library version: 5", "driver_message", 9),
    }
    check("gpu_lost", table)
    check("unused_gpu", {"never answered": (table["errs in all but memory"].run, "gpu:1 not_recorded")})


def test_log_gaps() -> None:
    two = rec(util=[LONG, LONG], times=[*range(100), *range(150, 250), *range(270, 370)])
    few, more = (rec(util=steps((97, 4)), times=[0, 1, 2, 60]), rec(util=steps((97, 40)), times=[*range(39), 90]))

    def limited(every: float) -> Recording:
        return rec(util=[steps((97, 100))], times=np.r_[0:50, 80:130] * every, every=every)

    limits = {every: findings_of(analyze(limited(every)), "log_gap")[0].evidence[0].threshold for every in (1.0, 3.0)}
    assert {every: limit and limit.value for every, limit in limits.items()} == {1.0: 5.0, 3.0: 10.5}
    times = np.cumsum(np.tile([5, 5, 5, 13], 30))
    untimed = with_quality(rec(util=LONG), synthetic_time=True)
    table: Table = {
        "of both GPUs": want(two, gpus="", spans=[(99, 150), (249, 270)], lost=None, severity="info"),
        "of few samples": want(few, confidence="medium"),
        "of many": want(more, confidence="high"),
        "5 s is the least": want(limited(1.0), length=31),
        "3.5 intervals": want(limited(3.0), length=93),
        "2.6 intervals": rec(util=steps((97, 120)), times=times, every=5.0),
        "no times": (untimed, "no_timestamps"),
    }
    check("log_gap", table)


def test_pauses_and_coverage_agree_with_the_gap() -> None:
    """What samples do not own is a gap or a pause: 19 s and 2 x 1.5 s of 199 s."""
    times = [*range(50), *range(53, 100), *range(103, 150), *range(169, 200)]
    analysis = analyze(rec(util=[steps((97, len(times)))], times=times))
    pauses = analysis.pauses
    assert pauses is not None
    assert (pauses.count, pauses.longest_seconds, pauses.seconds) == (2, 4.0, 3.0)
    assert analysis.coverage_ratio is not None
    assert abs(analysis.coverage_ratio - (1 - (pauses.seconds + 20 - 1) / 199)) < 1e-9
    single = rec(util=[[50.0, 50.0], [50.0, 50.0]], times=[0.0, 0.2])
    assert analyze(single.with_series(single.series.take([0, 3]))).coverage_ratio is None


def test_a_log_that_ends_early() -> None:
    def trained(*seconds: float) -> Recording:
        return with_training(rec(util=LONG), [(float(each), "loss", 1.0) for each in seconds])

    going_on = rec(util=LONG, cpu=steps((20, 600)))
    both = rec(util=[LONG, LONG])
    vanished = both.with_series(both.series.slice(0, len(both.rows_of("gpu:0")) + 100))
    summary = with_training(rec(util=LONG), [(1.0, "loss", 1.0), (100.0, "loss", 1.0), (900.0, "f1", 0.5)])
    later = with_host(rec(util=LONG), 200 + np.arange(300.0), cpu_utilization_ratio=0.2)
    gone = np.concatenate([steps((97, 100)), np.full(200, np.nan)])
    lost = rec(util=[LONG, gone], power=[steps((300, 300)), np.where(np.isnan(gone), np.nan, 300)])
    assert "full disk" not in findings_of(analyze(vanished), "monitoring_ended")[0].recommendation
    untimed = with_quality(going_on, synthetic_time=True)
    table: Table = {
        "before the host log": want(going_on, severity="warning", confidence="high", spans=[(299, 599)]),
        "before the training metrics": want(trained(*range(0, 600, 10)), spans=[(299, 590)]),
        "of both GPUs": want(rec(util=[LONG, LONG], cpu=steps((20, 600))), gpus="0,1"),
        "few points after it": want(trained(*range(0, 500, 60)), confidence="medium"),
        "one GPU of two": want(
            vanished,
            gpus="1",
            summary="The log of GPU 1 stopped 3 min 20 s before that of GPU 0, 67% of the run.",
        ),
        "together": rec(util=LONG, cpu=steps((20, 300))),
        "one late point": summary,
        "a clock that differs": later,
        "a lost GPU": told(going_on, "GPU is lost", seconds=299),
        "rows without values": lost,
        "nothing else": (rec(util=LONG), "nothing_to_compare"),
        "no times": (untimed, "no_timestamps"),
    }
    check("monitoring_ended", table)


def test_slow_links() -> None:
    util = steps((0, 20), (97, 100))

    def link(generation: Any, width: Any = 16, util: Any = util) -> Recording:
        series = {"link_generation_max": 4, "link_width_max": 16}
        return rec(util=util, link_generation=generation, link_width=width, **series)

    severities = {(2, 16): "warning", (3, 8): "warning", (4, 4): "warning", (1, 16): "problem"}
    idle = rec(power=np.full(60, 80.0), link_width=8, link_width_max=16)
    table: Table = {
        "half of the lanes": want(link(4, 8), gpus="0", severity="info", confidence="high"),
        **{f"gen {g} x{w}": (link(g, w), [want(severity=severity)]) for (g, w), severity in severities.items()},
        "one of two GPUs": want(
            rec(util=[util, util], link_width=[steps((16, 120)), steps((4, 120))], link_width_max=16),
            gpus="1",
            severity="warning",
        ),
        "full": link(4),
        "slower at rest": link(steps((1, 20), (4, 100))),
        "best of the busy samples": link(steps((1, 60), (4, 60))),
        "four busy samples": (link(1, util=steps((0, 116), (97, 4))), "too_few_busy_samples"),
        "no columns": (rec(util=util), "not_recorded", "pcie_link_generation_max"),
        "no utilisation": (idle, "not_recorded", "gpu_utilization_ratio"),
        "no highest width": (rec(util=util, link_width=8, link_generation_max=4), "not_recorded"),
    }
    check("pcie_degraded", table)

"""GPUs that are lost, memory errors, slow links, and logs with gaps or an early end."""

from dataclasses import replace

import numpy as np

from gpureport.testing import AbsentCells, Recording, analyze, steps, with_host, with_quality, with_training
from tests.analysis.tables import Hold, rec
from tests.support.runs import event

GONE, THERE = np.concatenate([steps((97, 60)), np.full(60, np.nan)]), steps((97, 120))
LONG = steps((97, 300))


def test_memory_errors(hold: Hold) -> None:
    hold("ecc_error")


def at_addresses(run: Recording) -> Recording:
    gpus = [replace(gpu, bus_id=f"00000000:{0x18 + (gpu.index or 0):02X}:00.0") for gpu in run.run.gpus]
    return replace(run, run=replace(run.run, devices=tuple(gpus)))


def told(
    run: Recording, text: str, kind: str = "gpu_lost", seconds: float = 59, device: str | None = None
) -> Recording:
    return with_quality(run, log_events=(event(kind, seconds, text, device=device),))


def test_lost_gpus(hold: Hold) -> None:
    back = np.concatenate([steps((97, 40)), np.full(20, np.nan), steps((97, 60))])
    handle = "Unable to determine the device handle for GPU 0000:19:00.0: GPU is lost.  Reboot the system to recover"
    xids = (
        "NVRM: Xid (PCI:0000:18:00): 79, pid=1234, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:18:00): 31, pid=1234, MMU Fault",
        "NVRM: Xid (PCI:0000:18:00): 63, Row Remapper: New row marked for remapping",
        "NVRM: Xid 48",
    )
    two = rec(util=[THERE, GONE])
    never = [THERE, np.full(120, np.nan)]
    flickers = np.where(np.isin(np.arange(120) // 20, [2, 4]), np.nan, 97.0)
    table = {
        "errs in all but memory": told(
            rec(util=never, power=never, memory=[[9], [0]]), "[ERR!]", seconds=0, device="gpu:1"
        ),
        "of which memory alone was recorded": told(
            rec(memory=[THERE / 10, GONE / 10]), "[GPU is lost]", seconds=60, device="gpu:1"
        ),
        "errs twice": told(rec(util=[THERE, flickers]), "[ERR!]", seconds=40, device="gpu:1"),
        "a message that fits the silent one": told(rec(util=[THERE, GONE], power=[THERE, GONE]), "GPU is lost"),
        "named in a cell": told(two, "[GPU is lost]", seconds=60, device="gpu:1"),
        "by its address": told(at_addresses(two), handle),
        "the only one": told(rec(util=GONE), "GPU is lost"),
        "one of two": told(rec(util=[THERE, THERE]), "GPU is lost"),
        "that comes back": told(rec(util=back), "[GPU is lost]", seconds=40, device="gpu:0"),
        **{text: told(at_addresses(rec(util=THERE)), text, "driver_message", 60) for text in xids},
        "errors in one column": with_quality(
            rec(util=[THERE, THERE], power=[GONE, THERE]),
            absent_cells=(AbsentCells(column="power.draw", reason="Unknown Error", cells=60),),
        ),
        "a change of the last Xid": rec(util=THERE, xid=steps((0, 60), (74, 60))),
        "rows without any value": rec(util=[THERE, GONE], power=[THERE, GONE]),
        "an Xid of an earlier job": rec(util=THERE, xid=steps((74, 120))),
        "one metric": rec(util=GONE, power=THERE),
        "a hole in the middle": rec(util=np.concatenate([steps((97, 20)), np.full(60, np.nan), steps((97, 40))])),
        "another message": told(rec(util=THERE), "NVML library version: 5", "driver_message", 9),
    }
    hold("gpu_lost", table)
    hold("unused_gpu, summaries", {"never answered": table["errs in all but memory"]})


def test_log_gaps(hold: Hold) -> None:
    two = rec(util=[LONG, LONG], times=[*range(100), *range(150, 250), *range(270, 370)])
    few, more = (rec(util=steps((97, 4)), times=[0, 1, 2, 60]), rec(util=steps((97, 40)), times=[*range(39), 90]))

    def limited(every: float) -> Recording:
        return rec(util=[steps((97, 100))], times=np.r_[0:50, 80:130] * every, every=every)

    times = np.cumsum(np.tile([5, 5, 5, 13], 30))
    table = {
        "of both GPUs": two,
        "of few samples": few,
        "of many": more,
        "5 s is the least": limited(1.0),
        "3.5 intervals": limited(3.0),
        "2.6 intervals": rec(util=steps((97, 120)), times=times, every=5.0),
        "no times": with_quality(rec(util=LONG), synthetic_time=True),
    }
    hold("log_gap", table)


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


def test_a_log_that_ends_early(hold: Hold) -> None:
    def trained(*seconds: float) -> Recording:
        return with_training(rec(util=LONG), [(float(each), "loss", 1.0) for each in seconds])

    going_on = rec(util=LONG, cpu=steps((20, 600)))
    both = rec(util=[LONG, LONG])
    vanished = both.with_series(both.series.slice(0, len(both.rows_of("gpu:0")) + 100))
    summary = with_training(rec(util=LONG), [(1.0, "loss", 1.0), (100.0, "loss", 1.0), (900.0, "f1", 0.5)])
    later = with_host(rec(util=LONG), 200 + np.arange(300.0), cpu_utilization_ratio=0.2)
    gone = np.concatenate([steps((97, 100)), np.full(200, np.nan)])
    lost = rec(util=[LONG, gone], power=[steps((300, 300)), np.where(np.isnan(gone), np.nan, 300)])
    table = {
        "before the host log": going_on,
        "before the training metrics": trained(*range(0, 600, 10)),
        "of both GPUs": rec(util=[LONG, LONG], cpu=steps((20, 600))),
        "few points after it": trained(*range(0, 500, 60)),
        "one GPU of two": vanished,
        "together": rec(util=LONG, cpu=steps((20, 300))),
        "one late point": summary,
        "a clock that differs": later,
        "a lost GPU": told(going_on, "GPU is lost", seconds=299),
        "rows without values": lost,
        "no times": with_quality(going_on, synthetic_time=True),
    }
    hold("monitoring_ended", table)
    hold("summaries", {"one GPU of two": vanished})


def test_slow_links(hold: Hold) -> None:
    hold("pcie_degraded")

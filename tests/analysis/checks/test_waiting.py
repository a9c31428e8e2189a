"""GPUs that wait for a CPU, for one core, for storage or for copies, and host memory beside that."""

from dataclasses import replace

import numpy as np

from gpureport.testing import Device, Floats, Recording, analyze, findings_of, steps, with_host
from tests.analysis.tables import Hold, rec


def phase(*levels: float, length: int = 300) -> Floats:
    return steps(*((level, length) for level in levels))


UTIL, CALM, FULL, COPIES = phase(97, 30, 97), steps((10, 900)), phase(20, 95, 20), phase(1, 22, 1)


def copied(received: Floats, sent: Floats | float) -> Recording:
    """Return a run at 40% beside a link of generation 4 with 16 lanes."""
    return rec(util=phase(97, 40, 97), received=received, sent=sent, link_generation=4, link_width=16)


def test_waiting_for_the_cpu(hold: Hold) -> None:
    days = np.concatenate([np.arange(600.0), np.arange(600.0) + 10 * 86_400])
    host = {"cores": np.ones(900), "cores_of_job": np.full(900, 0.45)}
    table = {
        "half a core of one": rec(util=UTIL, cpu=FULL * 0.8 / 0.95, host=host),
        "days without a log": with_host(rec(util=steps((40, 1200)), times=days), days, cpu_utilization_ratio=0.99),
    }
    hold("cpu_bound", table)


def test_low_use_beside_other_programs(hold: Hold) -> None:
    times = np.arange(300.0, 345.0)
    table = {
        "watched for a seventh of it": with_host(
            rec(util=UTIL), times, cpu_utilization_ratio=0.95, cpu_logical_cores=16.0, job_cpu_cores=0.02
        ),
    }
    hold("underutilised, low_util_cause_unknown, GPU time", table)


def test_how_much_of_the_cpu_a_job_uses(hold: Hold) -> None:
    hold("kinds")


def test_each_node_gets_the_load_of_its_own_host(hold: Hold) -> None:
    run = rec(util=[phase(97, 36, 97)] * 2)
    nodes = {"gpu:0": "a", "gpu:1": "b"}
    run = replace(run, run=replace(run.run, devices=tuple(replace(d, node=nodes[d.id]) for d in run.run.devices)))
    for node, cpu in (("a", 0.95), ("b", 0.8)):
        host = {"cpu_utilization_ratio": cpu, "cpu_logical_cores": 16.0, "job_cpu_cores": 0.02}
        run = with_host(run, np.arange(900.0), Device(id=f"{node}/host", node=node), **host)
    hold("low_util_cause_unknown", {"two nodes": run})


def coarse_core(every: float) -> Recording:
    noisy = np.clip(np.random.default_rng(3).normal(38, 9, 90), 0, 100)
    host = {"core": phase(60, 99, 60, length=90)}
    util = np.concatenate([np.full(90, 97), noisy, np.full(90, 97)])
    return rec(util=util, every=every, cpu=np.full(270, 12), cpu_every=every, host=host)


def test_waiting_for_one_core(hold: Hold) -> None:
    hold("cpu_bound_single", {f"{every:g} s apart": coarse_core(every) for every in (5.0, 30.0)})
    hold("kinds")


def test_waiting_for_storage(hold: Hold) -> None:
    iowait = 40 + np.random.default_rng(1).uniform(-5, 5, 900)
    hold("io_bound", {"as long beside busy GPUs": rec(util=UTIL, cpu=CALM, host={"iowait": iowait})})
    hold("kinds, GPU time")


def test_waiting_for_copies(hold: Hold) -> None:
    """22 GB/s are 70% of a link of generation 4 with 16 lanes; what a link carries follows from both."""
    hold("transfer_bound", {"the sum of both directions": copied(COPIES / 1.5, COPIES / 1.5)})
    hold("kinds, GPU time")


def test_another_order_in_time_explains_nothing() -> None:
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(900)
        for share in (0.35, 0.5):
            low = round(900 * share)
            util = steps((97, 900 - low), (30, low))
            iowait, core, cpu = (steps((calm, 900 - low), (full, low)) for calm, full in ((1, 60), (40, 99), (20, 95)))
            for kind in ("io_bound", "cpu_bound_single", "cpu_bound"):
                counts = []
                for place in (np.arange(900), order):
                    host = {"iowait": iowait[place]} if kind == "io_bound" else {"core": core[place]}
                    series = {"cpu": cpu[place]} if kind == "cpu_bound" else {"cpu": CALM, "host": host}
                    counts.append(len(findings_of(analyze(rec(util=util, **series)), kind)))
                assert counts == [1, 0], (kind, seed, share)
        assert findings_of(analyze(copied((COPIES + 8)[order], 0.5)), "transfer_bound") == [], seed


def test_chance_is_no_wait_and_gaps_follow_from_one(hold: Hold) -> None:
    # At 10 s, 80% of samples at 95% dip below 64% by chance for minutes; a real wait does not depend on it.
    wait = np.where(np.arange(2000) % 400 < 200, 40, 1)
    for seed in range(5):
        chance = np.random.default_rng(seed)
        fine, low = np.where(chance.random(2000) < 0.8, 95, 0), np.where(chance.random(2000) < 0.3, 95, 0)
        for util, expected in ((fine, 0), (np.where(wait > 1, low, fine), 1)):
            run = rec(util=util, every=10, cpu=np.full(2000, 10), cpu_every=10, host={"iowait": wait})
            assert len(findings_of(analyze(run), "io_bound")) == expected, seed
    hold("idle_gap")


def test_host_memory_beside_a_wait(hold: Hold) -> None:
    hold("workers_headroom, host_memory_pressure")


def test_cores_are_evidence_of_waits(hold: Hold) -> None:
    hold("cpu_bound, workers_headroom, underutilised")

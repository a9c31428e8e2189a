"""GPUs that wait for a CPU, for one core, for storage or for copies, and host memory beside that."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import Device, Floats, Recording, analyze, findings_of, steps, with_host, with_params
from tests.analysis.tables import Hold, rec


def phase(*levels: float, length: int = 300) -> Floats:
    return steps(*((level, length) for level in levels))


UTIL, CALM, FULL = phase(97, 30, 97), steps((10, 900)), phase(20, 95, 20)
PEGGED, IOWAIT, COPIES = phase(60, 100, 60), phase(1, 40, 1), phase(1, 22, 1)
BURSTS = np.concatenate([steps((97, 300)), np.tile(steps((95, 10), (0, 10)), 15), steps((97, 300))])


def beside(*, util: Any = UTIL, **host: Any) -> Recording:
    """Return a run beside a host with these metrics, sampled each second."""
    metrics = {"cpu": "cpu_utilization_ratio", "cores": "cpu_logical_cores", "job": "job_cpu_cores"}
    metrics |= {"memory": "host_memory_used_ratio", "core": "cpu_busiest_core_ratio", "process": "process_cpu_cores"}
    metrics |= {"iowait": "cpu_iowait_ratio"}
    ratios = {"cpu", "memory", "core", "iowait"}
    series = {metrics[name]: np.asarray(value) / (100 if name in ratios else 1) for name, value in host.items()}
    run = rec(util=util)
    return with_host(run, np.arange(float(np.shape(util)[-1])), **series)


def single(core: Floats = PEGGED, **host: Any) -> Recording:
    return beside(**({"util": phase(97, 38, 97), "cpu": CALM, "core": core} | host))


def linked(util: Any = None, received: Any = None, **series: Any) -> Recording:
    """Return a run at 40% beside a link of generation 4 with 16 lanes."""
    cpu = series.pop("cpu", None)
    given = {"sent": 0.5, "link_generation": 4, "link_width": 16} | series
    util = phase(97, 40, 97) if util is None else util
    return rec(util=util, received=COPIES if received is None else received, cpu=cpu, **given)


def test_waiting_for_the_cpu(hold: Hold) -> None:
    days = np.concatenate([np.arange(600.0), np.arange(600.0) + 10 * 86_400])
    table = {
        "a phase": rec(util=UTIL, cpu=FULL),
        "other programs": beside(cpu=FULL, cores=16.0, job=1.0),
        "the job's own load": beside(cpu=FULL, cores=16.0, job=14.0),
        "whose is not known": beside(cpu=FULL, cores=16.0, job=np.nan),
        "half a core of one": beside(cpu=FULL * 0.8 / 0.95, cores=1.0, job=0.45),
        "the job watched for 45 s of it": beside(
            cpu=FULL, cores=16.0, job=np.where((np.arange(900) >= 300) & (np.arange(900) < 345), 0.02, np.nan)
        ),
        "a coarser host log": rec(util=UTIL, cpu=steps((20, 30), (95, 30), (20, 30)), cpu_every=10.0),
        "beside an unused GPU": rec(util=[UTIL, np.zeros(900)], cpu=FULL),
        "days without a log": with_host(rec(util=steps((40, 1200)), times=days), days, cpu_utilization_ratio=0.99),
        "light work all along": rec(util=np.full(900, 2), cpu=np.full(900, 90)),
        "light work mostly": rec(util=np.where(np.arange(900) % 3, 2, 0), cpu=np.full(900, 90)),
        "of a display": rec(util=np.full(900, 2), memory=np.full(900, 0.3), cpu=np.full(900, 90)),
        "now and then": rec(util=np.where(np.arange(900) % 3, 0, 2), cpu=np.full(900, 90)),
        "busy GPU": rec(util=phase(97, 97, 97), cpu=phase(95, 95, 95)),
        "low CPU": rec(util=UTIL, cpu=phase(20, 20, 20)),
        "a checkpoint": rec(util=steps((97, 300), (0, 20), (97, 300)), cpu=steps((20, 300), (95, 20), (20, 300))),
        "start-up": rec(util=steps((0, 300), (97, 300)), cpu=steps((95, 600))),
        "the job hardly uses it": beside(cpu=FULL, cores=16.0, job=0.02),
        "another time": rec(util=UTIL, cpu=steps((95, 100))),
    }
    hold("cpu_bound", table)


def test_low_use_beside_other_programs(hold: Hold) -> None:
    times = np.arange(300.0, 345.0)
    table = {
        "16 cores": beside(cpu=FULL, memory=20, job=0.02, cores=16.0),
        "cores not known": beside(cpu=FULL, memory=20, job=0.02),
        "watched for a seventh of it": with_host(
            rec(util=UTIL), times, cpu_utilization_ratio=0.95, cpu_logical_cores=16.0, job_cpu_cores=0.02
        ),
    }
    hold("underutilised, low_util_cause_unknown, GPU time", table)


def test_how_much_of_the_cpu_a_job_uses(hold: Hold) -> None:
    table = {
        "hardly": (0.02, 95, 16.0),
        "more than half a core": (0.6, 95, 16.0),
        "one core": (0.45, 80, 1.0),
        "whatever the cores": (0.02, 95, np.nan),
        "job not known": (np.nan, 95, 16.0),
    }
    made = {name: beside(cpu=phase(20, cpu, 20), cores=cores, job=job) for name, (job, cpu, cores) in table.items()}
    hold("kinds", made)


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


def moving(process: float, job: float, util: Floats | None = None) -> Recording:
    util = np.full(900, 38.0) if util is None else util
    return beside(util=util, cpu=CALM, core=np.full(900, 55), process=np.full(900, process), job=np.full(900, job))


def test_waiting_for_one_core(hold: Hold) -> None:
    alone = beside(util=np.full(900, 38), cpu=CALM, core=np.full(900, 100))

    def copying(received: float, sent: float) -> Recording:
        series = {"received": np.full(900, received), "sent": np.full(900, sent)}
        return rec(util=np.full(900, 19), cpu=CALM, host={"core": np.full(900, 99)}, **series)

    def watched(known: int) -> Recording:
        return single(job=np.where((np.arange(900) >= 300) & (np.arange(900) < 300 + known), 0.02, np.nan))

    def short(seconds: int) -> Recording:
        return beside(util=np.full(seconds, 38), cpu=steps((12, seconds)), core=np.full(seconds, 99))

    table = {
        "a phase": single(),
        "5 s apart": coarse_core(5.0),
        "30 s apart": coarse_core(30.0),
        "never busy": alone,
        "the job's own core": single(job=1.2),
        "the job known for 45 s": watched(45),
        "the job known for 100 s": watched(100),
        "one busy process": beside(util=phase(97, 38, 97), cpu=CALM, process=phase(0.6, 1, 0.6)),
        "a thread between cores": moving(1.0, 1.0),
        "dense copies": copying(7.3, 0.3),
        "few copies": copying(0.8, 0.1),
        "copies both ways": copying(7.3, 7.0),
        "a job of 50 s": short(50),
        "tiny kernels": beside(util=np.full(900, 3), cpu=CALM, process=np.full(900, 1.0)),
        "busy GPU": single(util=phase(97, 97, 97), core=np.full(900, 100)),
        "all cores full": single(cpu=phase(12, 95, 12)),
        "start-up": single(steps((100, 300), (60, 600)), util=steps((0, 300), (97, 600))),
        "loading": single(steps((100, 300), (60, 600)), util=steps((3, 300), (97, 600))),
        "as full beside busy GPUs": single(np.full(900, 100)),
        "another program's core": single(job=0.03),
        "a process of six threads": beside(util=phase(97, 38, 97), cpu=CALM, process=6 * phase(0.6, 1, 0.6)),
        "spins beside a busy GPU": moving(1.0, 1.0, np.tile(steps((96, 52), (2, 8)), 15)),
        "has workers": moving(1.0, 2.4),
        "four that wait": moving(0.25, 1.0),
        "no cores": beside(cpu=CALM, iowait=np.full(900, 1)),
        "no CPU": beside(core=PEGGED),
    }
    hold("cpu_bound_single", table)
    hold("kinds", {"a phase": single()})


def stored(util: Floats, iowait: Floats, cpu: Floats = CALM) -> Recording:
    return rec(util=util, cpu=cpu[: len(util)], host={"iowait": iowait})


def test_waiting_for_storage(hold: Hold) -> None:
    bursty = np.where(np.arange(900) % 3 == 0, IOWAIT * 1.95, 0)
    table = {
        "a phase": stored(UTIL, IOWAIT),
        "in bursts": stored(UTIL, bursty),
        "a slow first epoch": stored(steps((7, 300), (97, 600)), steps((40, 300), (1, 600))),
        "never busy": stored(np.full(900, 30), np.full(900, 40)),
        "busy GPU": stored(phase(97, 97, 97), phase(40, 40, 40)),
        "start-up": stored(steps((0, 300), (97, 300)), steps((60, 600))),
        "another time": stored(UTIL, steps((40, 300), (1, 600))),
        "a full CPU": stored(UTIL, IOWAIT, FULL),
        "as long beside busy GPUs": stored(UTIL, 40 + np.random.default_rng(1).uniform(-5, 5, 900)),
        "no column": rec(util=UTIL, cpu=CALM),
        "another log": rec(util=UTIL, cpu=np.full(100, 10), host={"iowait": np.full(100, 40)}),
    }
    hold("io_bound", table)
    hold("kinds, GPU time", {"a phase": stored(UTIL, IOWAIT)})


def test_waiting_for_copies(hold: Hold) -> None:
    """22 GB/s are 70% of a link of generation 4 with 16 lanes; what a link carries follows from both."""

    def rate(generation: int, width: int, received: float) -> Recording:
        return linked(received=phase(0.1, received, 0.1), sent=0.01, link_generation=generation, link_width=width)

    util = phase(97, 40, 97)
    table = {
        "a phase": linked(),
        "generation 3": rate(3, 16, 11),
        "eight lanes": rate(4, 8, 11),
        "generation 1, four lanes": rate(1, 4, 0.7),
        "the other direction": linked(received=COPIES * 0, sent=COPIES),
        "only the GPU that waits": linked([util, steps((97, 900))], [COPIES, COPIES]),
        "received alone": rec(util=util, received=COPIES, link_generation=4, link_width=16),
        "8 of 15.8 GB/s": rate(3, 16, 8),
        "22 of 63 GB/s": rate(5, 16, 22),
        "0.7 of 2 GB/s": rate(2, 4, 0.7),
        "a link that is slower at rest": linked(received=COPIES / 2, link_generation=np.where(util > 90, 4, 1)),
        "the sum of both directions": linked(received=COPIES / 1.5, sent=COPIES / 1.5),
        "busy GPU": linked(phase(97, 97, 97), phase(22, 22, 22)),
        "as dense beside a busy GPU": linked(received=phase(22, 22, 22)),
        "start-up": linked(steps((0, 300), (97, 600)), steps((22, 300), (1, 600))),
        "a full CPU": linked(cpu=FULL),
        "no link": rec(util=util, received=COPIES, sent=0.5),
        "no lanes": linked(link_width=0),
    }
    hold("transfer_bound", table)
    hold("kinds, GPU time", {"a phase": linked()})


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
        assert findings_of(analyze(linked(received=(COPIES + 8)[order])), "transfer_bound") == [], seed


def test_chance_is_no_wait_and_gaps_follow_from_one(hold: Hold) -> None:
    # At 10 s, 80% of samples at 95% dip below 64% by chance for minutes; a real wait does not depend on it.
    wait = np.where(np.arange(2000) % 400 < 200, 40, 1)
    for seed in range(5):
        chance = np.random.default_rng(seed)
        fine, low = np.where(chance.random(2000) < 0.8, 95, 0), np.where(chance.random(2000) < 0.3, 95, 0)
        for util, expected in ((fine, 0), (np.where(wait > 1, low, fine), 1)):
            run = rec(util=util, every=10, cpu=np.full(2000, 10), cpu_every=10, host={"iowait": wait})
            assert len(findings_of(analyze(run), "io_bound")) == expected, seed
    runs = {"cpu_bound": rec(util=BURSTS, cpu=FULL), "io_bound": stored(BURSTS, IOWAIT)}
    hold("idle_gap", runs)


def test_host_memory_beside_a_wait(hold: Hold) -> None:
    filling = phase(20, 80, 20)

    def held(memory: Any, cpu: Floats = filling, util: Floats = UTIL, iowait: Any = 0.0) -> Recording:
        return beside(util=util, cpu=cpu, memory=np.broadcast_to(memory, 900), iowait=np.broadcast_to(iowait, 900))

    tenth, hundredth = (np.where(np.arange(900) % every == 0, 95, 75) for every in (10, 100))
    table = {
        "93%": held(93),
        "95% for a tenth of the time": held(tenth),
        "95% for a hundredth": held(hundredth),
        "between": held(80),
        "no free core": held(30, phase(20, 98, 20)),
        "busy GPUs": held(30, util=phase(97, 97, 97)),
        "no wait": held(95, phase(20, 20, 20)),
        "no memory": rec(util=UTIL, cpu=filling),
        "low memory and a free core": held(30),
        "a wait for storage": held(30, CALM, iowait=IOWAIT),
    }
    hold("workers_headroom, host_memory_pressure", table)


def test_cores_are_evidence_of_waits(hold: Hold) -> None:
    util, cpu = steps((97, 60), (30, 300)), steps((40, 60), (82, 300))
    host = {"memory": np.full(360, 20.0), "cores": np.full(360, 8.0)}
    one = beside(util=util, cpu=cpu, **host)
    table = {
        "two GPUs": beside(util=[util, util], cpu=cpu, **host),
        "one": one,
        "by params": with_params(one, cpu_count="4"),
        "an idle CPU": beside(util=np.full(360, 30.0), cpu=np.full(360, 5.0), **host),
        "not counted": rec(util=util, cpu=cpu),
        "a worker on each core": with_params(one, num_workers="8"),
    }
    hold("cpu_bound, workers_headroom, underutilised", table)

"""GPUs that wait for a CPU, for one core, for storage or for copies, and host memory beside that."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.testing import Device, Floats, Recording, analyze, findings_of, steps, with_host, with_params
from tests.analysis.tables import Table, check, rec, want

WAITS = ("cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound")


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


def only(analysis_kinds: set[str], run: Recording) -> set[str]:
    return analysis_kinds & {one.kind for one in analyze(run).findings}


def test_waiting_for_the_cpu() -> None:
    days = np.concatenate([np.arange(600.0), np.arange(600.0) + 10 * 86_400])
    paused = with_host(rec(util=steps((40, 1200)), times=days), days, cpu_utilization_ratio=0.99)
    table: Table = {
        "a phase": want(
            rec(util=UTIL, cpu=FULL),
            gpus="0",
            spans=[(299.5, 599.5)],
            within=5,
            lost=210,
            near=5,
            severity="problem",
            cause="data",
            ruled_out=2,
        ),
        "other programs": want(
            beside(cpu=FULL, cores=16.0, job=1.0),
            cause="other programs",
            steps=["free_cpu"],
            evidence={"the job's share of the CPU load": 0.066, "cpu_logical_cores": 16},
        ),
        "the job's own load": want(beside(cpu=FULL, cores=16.0, job=14.0), cause="data"),
        "whose is not known": want(beside(cpu=FULL, cores=16.0, job=np.nan), cause="data"),
        "half a core of one": want(beside(cpu=FULL * 0.8 / 0.95, cores=1.0, job=0.45), cause="data"),
        "the job watched for 45 s of it": want(
            beside(cpu=FULL, cores=16.0, job=np.where((np.arange(900) >= 300) & (np.arange(900) < 345), 0.02, np.nan))
        ),
        "a coarser host log": want(
            rec(util=UTIL, cpu=steps((20, 30), (95, 30), (20, 30)), cpu_every=10.0), length=300, within=20
        ),
        "beside an unused GPU": want(rec(util=[UTIL, np.zeros(900)], cpu=FULL), gpus="0"),
        "days without a log": want(paused, length=1200, within=3600),
        "light work all along": want(rec(util=np.full(900, 2), cpu=np.full(900, 90)), length=900, within=10),
        "light work mostly": want(
            rec(util=np.where(np.arange(900) % 3, 2, 0), cpu=np.full(900, 90)), length=900, within=10
        ),
        "of a display": rec(util=np.full(900, 2), memory=np.full(900, 0.3), cpu=np.full(900, 90)),
        "now and then": rec(util=np.where(np.arange(900) % 3, 0, 2), cpu=np.full(900, 90)),
        "busy GPU": rec(util=phase(97, 97, 97), cpu=phase(95, 95, 95)),
        "low CPU": rec(util=UTIL, cpu=phase(20, 20, 20)),
        "a checkpoint": rec(util=steps((97, 300), (0, 20), (97, 300)), cpu=steps((20, 300), (95, 20), (20, 300))),
        "start-up": rec(util=steps((0, 300), (97, 300)), cpu=steps((95, 600))),
        "the job hardly uses it": beside(cpu=FULL, cores=16.0, job=0.02),
        "no CPU": (rec(util=UTIL), "not_recorded", "cpu_utilization_ratio"),
        "another time": (rec(util=UTIL, cpu=steps((95, 100))), "host covers_too_little"),
    }
    check("cpu_bound", table)


def test_low_use_beside_other_programs() -> None:
    for cores in (16.0, None):
        counted = {} if cores is None else {"cores": cores}
        analysis = analyze(beside(cpu=FULL, memory=20, job=0.02, **counted))
        check("underutilised", {"it": (analysis, [])})
        wanted = want(
            cause="not shown beside other programs",
            steps=["loader_workers", "prefetch"],
            evidence={"job_cpu_cores": 0.02},
            lost=210,
            near=15,
        )
        check("low_util_cause_unknown", {f"{cores} cores": (analysis, [wanted])})
        assert "measure_alone" in {step.name for step in findings_of(analysis, "low_util_cause_unknown")[0].steps}
        assert abs(dict(analysis.gpu_time[0].seconds)["low_use"] - 210) < 15
    times = np.arange(300.0, 345.0)
    brief = with_host(rec(util=UTIL), times, cpu_utilization_ratio=0.95, cpu_logical_cores=16.0, job_cpu_cores=0.02)
    table: Table = {"watched for a seventh of it": want(brief, cause=None)}
    check("low_util_cause_unknown", table)


def test_how_much_of_the_cpu_a_job_uses() -> None:
    table = {
        "hardly": (0.02, 95, 16.0, True),
        "more than half a core": (0.6, 95, 16.0, False),
        "one core": (0.45, 80, 1.0, False),
        "whatever the cores": (0.02, 95, np.nan, True),
        "job not known": (np.nan, 95, 16.0, False),
    }
    for name, (job, cpu, cores, hardly) in table.items():
        kinds = only({"cpu_bound", "low_util_cause_unknown"}, beside(cpu=phase(20, cpu, 20), cores=cores, job=job))
        assert kinds == {"low_util_cause_unknown" if hardly else "cpu_bound"}, name


def test_each_node_gets_the_load_of_its_own_host() -> None:
    run = rec(util=[phase(97, 36, 97)] * 2)
    nodes = {"gpu:0": "a", "gpu:1": "b"}
    run = replace(run, run=replace(run.run, devices=tuple(replace(d, node=nodes[d.id]) for d in run.run.devices)))
    for node, cpu in (("a", 0.95), ("b", 0.8)):
        host = {"cpu_utilization_ratio": cpu, "cpu_logical_cores": 16.0, "job_cpu_cores": 0.02}
        run = with_host(run, np.arange(900.0), Device(id=f"{node}/host", node=node), **host)
    of_node = [
        want(gpus="0", evidence={"cpu_utilization_ratio": 0.95}),
        want(gpus="1", evidence={"cpu_utilization_ratio": 0.8}),
    ]
    table: Table = {"two nodes": (run, of_node)}
    check("low_util_cause_unknown", table)


def coarse_core(every: float) -> Recording:
    noisy = np.clip(np.random.default_rng(3).normal(38, 9, 90), 0, 100)
    host = {"core": phase(60, 99, 60, length=90)}
    util = np.concatenate([np.full(90, 97), noisy, np.full(90, 97)])
    return rec(util=util, every=every, cpu=np.full(270, 12), cpu_every=every, host=host)


def moving(process: float, job: float, util: Floats | None = None) -> Recording:
    util = np.full(900, 38.0) if util is None else util
    return beside(util=util, cpu=CALM, core=np.full(900, 55), process=np.full(900, process), job=np.full(900, job))


def test_waiting_for_one_core() -> None:
    alone = beside(util=np.full(900, 38), cpu=CALM, core=np.full(900, 100))

    def copying(received: float, sent: float) -> Recording:
        series = {"received": np.full(900, received), "sent": np.full(900, sent)}
        return rec(util=np.full(900, 19), cpu=CALM, host={"core": np.full(900, 99)}, **series)

    def watched(known: int) -> Recording:
        return single(job=np.where((np.arange(900) >= 300) & (np.arange(900) < 300 + known), 0.02, np.nan))

    def short(seconds: int) -> Recording:
        return beside(util=np.full(seconds, 38), cpu=steps((12, seconds)), core=np.full(seconds, 99))

    table: Table = {
        "a phase": want(
            single(), spans=[(299.5, 599.5)], within=5, lost=186, near=5, severity="problem", confidence="high"
        ),
        "5 s apart": want(coarse_core(5.0), length=450, within=23),
        "30 s apart": want(coarse_core(30.0), length=2700, within=135),
        "never busy": want(alone, severity="warning", confidence="medium"),
        "the job's own core": want(single(job=1.2)),
        "the job known for 45 s": want(watched(45), spans=[(345, 600)], within=5),
        "the job known for 100 s": want(watched(100), spans=[(400, 600)], within=5),
        "one busy process": want(
            beside(util=phase(97, 38, 97), cpu=CALM, process=phase(0.6, 1, 0.6)), evidence={"process_cpu_cores": 1.0}
        ),
        "a thread between cores": want(moving(1.0, 1.0), severity="warning", cause="one thread"),
        "dense copies": want(copying(7.3, 0.3), cause="copying", evidence={"pcie_receive_bytes_per_second": 7.3e9}),
        "few copies": want(copying(0.8, 0.1), cause="one thread"),
        "copies both ways": want(copying(7.3, 7.0), cause="one thread"),
        "a job of 50 s": want(short(50)),
        "tiny kernels": want(beside(util=np.full(900, 3), cpu=CALM, process=np.full(900, 1.0)), length=900, within=10),
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
        "no cores": (beside(cpu=CALM, iowait=np.full(900, 1)), "not_recorded", "cpu_busiest_core_ratio"),
        "no CPU": (beside(core=PEGGED), "not_recorded", "cpu_utilization_ratio"),
        "no host": (rec(util=UTIL), "not_recorded", "cpu_utilization_ratio"),
    }
    check("cpu_bound_single", table)
    assert only({*WAITS, "underutilised"}, single()) == {"cpu_bound_single"}


def stored(util: Floats, iowait: Floats, cpu: Floats = CALM) -> Recording:
    return rec(util=util, cpu=cpu[: len(util)], host={"iowait": iowait})


def test_waiting_for_storage() -> None:
    bursty = np.where(np.arange(900) % 3 == 0, IOWAIT * 1.95, 0)
    facts = {"severity": "problem", "confidence": "high", "cause": "storage"}
    table: Table = {
        "a phase": want(stored(UTIL, IOWAIT), spans=[(299.5, 599.5)], within=6, lost=210, near=6, **facts),
        "in bursts": want(stored(UTIL, bursty), length=300, within=12),
        "a slow first epoch": want(
            stored(steps((7, 300), (97, 600)), steps((40, 300), (1, 600))), spans=[(0, 300)], within=9
        ),
        "never busy": want(stored(np.full(900, 30), np.full(900, 40)), confidence="medium"),
        "busy GPU": stored(phase(97, 97, 97), phase(40, 40, 40)),
        "start-up": stored(steps((0, 300), (97, 300)), steps((60, 600))),
        "another time": stored(UTIL, steps((40, 300), (1, 600))),
        "a full CPU": stored(UTIL, IOWAIT, FULL),
        "as long beside busy GPUs": stored(UTIL, 40 + np.random.default_rng(1).uniform(-5, 5, 900)),
        "no column": (rec(util=UTIL, cpu=CALM), "not_recorded", "cpu_iowait_ratio"),
        "another log": (
            rec(util=UTIL, cpu=np.full(100, 10), host={"iowait": np.full(100, 40)}),
            "host covers_too_little",
        ),
    }
    check("io_bound", table)
    run = stored(UTIL, IOWAIT)
    assert only({*WAITS, "underutilised", "low_util_cause_unknown"}, run) == {"io_bound"}
    assert abs(dict(analyze(run).gpu_time[0].seconds)["waiting_for_input"] - 210) < 6


def test_waiting_for_copies() -> None:
    """22 GB/s are 70% of a link of generation 4 with 16 lanes; what a link carries follows from both."""
    used = 22e9 / (16e9 * 128 / 130 / 8 * 16)
    facts = {"severity": "problem", "confidence": "high", "lost": 180, "near": 6}

    def rate(generation: int, width: int, received: float) -> Recording:
        return linked(received=phase(0.1, received, 0.1), sent=0.01, link_generation=generation, link_width=width)

    util = phase(97, 40, 97)
    table: Table = {
        "a phase": want(linked(), spans=[(299.5, 599.5)], within=6, evidence={"PCIe traffic": used}, **facts),
        "generation 3": want(rate(3, 16, 11)),
        "eight lanes": want(rate(4, 8, 11)),
        "generation 1, four lanes": want(rate(1, 4, 0.7)),
        "the other direction": want(linked(received=COPIES * 0, sent=COPIES)),
        "only the GPU that waits": want(linked([util, steps((97, 900))], [COPIES, COPIES]), gpus="0"),
        "received alone": want(rec(util=util, received=COPIES, link_generation=4, link_width=16)),
        "generation from the table": want(rec(util=util, received=COPIES, sent=0.5, link_width=16), confidence="low"),
        "8 of 15.8 GB/s": rate(3, 16, 8),
        "22 of 63 GB/s": rate(5, 16, 22),
        "0.7 of 2 GB/s": rate(2, 4, 0.7),
        "a link that is slower at rest": linked(received=COPIES / 2, link_generation=np.where(util > 90, 4, 1)),
        "the sum of both directions": linked(received=COPIES / 1.5, sent=COPIES / 1.5),
        "busy GPU": linked(phase(97, 97, 97), phase(22, 22, 22)),
        "as dense beside a busy GPU": linked(received=phase(22, 22, 22)),
        "start-up": linked(steps((0, 300), (97, 600)), steps((22, 300), (1, 600))),
        "a full CPU": linked(cpu=FULL),
        "no traffic": (rec(util=util), "not_recorded", "pcie_receive_bytes_per_second"),
        "no link": (rec(util=util, received=COPIES, sent=0.5), "link_not_recorded", "pcie_link_width"),
        "no lanes": (linked(link_width=0), "link_not_recorded", "pcie_link_width"),
    }
    check("transfer_bound", table)
    analysis = analyze(linked())
    assert abs(dict(analysis.gpu_time[0].seconds)["waiting_for_input"] - 180) < 6
    assert findings_of(analysis, "low_util_cause_unknown") == []


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


def test_chance_is_no_wait_and_gaps_follow_from_one() -> None:
    # At 10 s, 80% of samples at 95% dip below 64% by chance for minutes; a real wait does not depend on it.
    wait = np.where(np.arange(2000) % 400 < 200, 40, 1)
    for seed in range(5):
        chance = np.random.default_rng(seed)
        fine, low = np.where(chance.random(2000) < 0.8, 95, 0), np.where(chance.random(2000) < 0.3, 95, 0)
        for util, expected in ((fine, 0), (np.where(wait > 1, low, fine), 1)):
            run = rec(util=util, every=10, cpu=np.full(2000, 10), cpu_every=10, host={"iowait": wait})
            assert len(findings_of(analyze(run), "io_bound")) == expected, seed
    runs = {"cpu_bound": rec(util=BURSTS, cpu=FULL), "io_bound": stored(BURSTS, IOWAIT)}
    for kind, run in runs.items():
        analysis = analyze(run)
        (root,), gaps = findings_of(analysis, kind), findings_of(analysis, "idle_gap")
        assert {gap.cause for gap in gaps} == {"data"}, kind
        assert root.consequences == (gaps[0].fingerprint,), kind


def test_host_memory_beside_a_wait() -> None:
    filling = phase(20, 80, 20)

    def held(memory: Any, cpu: Floats = filling, util: Floats = UTIL, iowait: Any = 0.0) -> Recording:
        return beside(
            util=util, cpu=cpu, memory=np.broadcast_to(memory, len(util)), iowait=np.broadcast_to(iowait, len(util))
        )

    room = want(gpus="host", spans=[(300, 600)], within=6, severity="info")
    tenth, hundredth = (np.where(np.arange(900) % every == 0, 95, 75) for every in (10, 100))
    host_memory_pressure: Table = {
        "93%": want(held(93), severity="warning"),
        "95% for a tenth of the time": want(held(tenth)),
        "95% for a hundredth": held(hundredth),
    }
    check("host_memory_pressure", host_memory_pressure)
    nothing = {
        "between": held(80),
        "no free core": held(30, phase(20, 98, 20)),
        "busy GPUs": held(30, util=phase(97, 97, 97)),
        "no wait": held(95, phase(20, 20, 20)),
    }
    for kind in ("workers_headroom", "host_memory_pressure"):
        check(kind, nothing)
        absent = {"no memory": (rec(util=UTIL, cpu=filling), "not_recorded", "host_memory_used_ratio")}
        check(kind, absent)
    workers_headroom: Table = {
        "low memory and a free core": (held(30), room),
        "a wait for storage": want(held(30, CALM, iowait=IOWAIT)),
        "full memory": held(93),
    }
    check("workers_headroom", workers_headroom)


def test_cores_are_evidence_of_waits() -> None:
    util, cpu = steps((97, 60), (30, 300)), steps((40, 60), (82, 300))
    host = {"memory": np.full(360, 20.0), "cores": np.full(360, 8.0)}
    two = beside(util=[util, util], cpu=cpu, **host)
    one = beside(util=util, cpu=cpu, **host)
    eight, four = (want(evidence={"cpu_logical_cores": cores}) for cores in (8.0, 4.0))
    for kind in ("cpu_bound", "workers_headroom"):
        check(kind, {"two GPUs": (two, [four]), "one": (one, [eight])})
    cpu_bound: Table = {"by params": (with_params(one, cpu_count="4"), four)}
    check("cpu_bound", cpu_bound)
    idle = beside(util=np.full(360, 30.0), cpu=np.full(360, 5.0), **host)
    underutilised: Table = {"an idle CPU": (idle, eight)}
    check("underutilised", underutilised)
    (uncounted,) = findings_of(analyze(rec(util=util, cpu=cpu)), "cpu_bound")
    assert "cpu_logical_cores" not in {each.metric for each in uncounted.evidence}
    workers_headroom: Table = {"a worker on each core": with_params(one, num_workers="8")}
    check("workers_headroom", workers_headroom)

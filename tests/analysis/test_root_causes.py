"""Which findings follow from which, on findings made by hand: no log holds each pair of kinds at will."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.account.answers import link_findings
from gpureport.analysis.rulebook import KINDS, RootCause
from gpureport.testing import Finding, Interval, Severity, at, finding

WHOLE, GPUS = Interval(at(0), at(1000)), ["gpu:0", "gpu:1"]
ZERO, ONE, NONE = ("gpu:0",), ("gpu:1",), ()
Pairs = list[tuple[str, str]]


def linked(*findings: Finding) -> tuple[Finding, ...]:
    return link_findings(findings, WHOLE, GPUS)


def pairs(*findings: Finding) -> Pairs:
    made = linked(*findings)
    named = {one.fingerprint: one.kind for one in made}
    return [(named[one.root], one.kind) for one in made if one.root]


def test_what_follows_from_what() -> None:
    heat, hot_one = finding("thermal_throttle", (0, 500)), finding("thermal_throttle", (0, 500), devices=ONE)
    everywhere = finding("imbalance", (10, 490), devices=NONE)
    odd = finding("imbalance", (110, 390), devices=ONE)
    gap = finding("idle_gap", (505, 900), devices=ONE)
    data = finding("idle_gap", (110, 120), cause="data")
    storage, cpu = finding("io_bound", (0, 500)), finding("cpu_bound", (0, 500))
    leaks = [finding("mem_leak", (0, 1000), devices=(device,)) for device in GPUS]
    full = finding("mem_pressure", devices=tuple(GPUS))
    apart = [finding("thermal_throttle", (0, 100)), finding("thermal_throttle", (500, 600), devices=ONE)]
    capped = finding("power_cap", (0, 100), (500, 600), devices=tuple(GPUS))
    slow = finding("imbalance", (10, 490), devices=ONE)
    waiting = finding("hollow_util", (10, 490), devices=ZERO, cause="straggler")
    hang = finding("hollow_util", (100, 400), devices=ZERO, cause="hang")
    within = {end: finding("idle_gap", (100, end), cause="data") for end in (209, 210, 212, 400)}
    wait, copies = finding("io_bound", (100, 200), cause="data"), finding("transfer_bound", (10, 50))
    unused = finding("idle_gap", (0, 1000), cause="unused")
    two, low = finding("cpu_bound", (0, 100), (200, 300)), finding("underutilised", (10, 90), (210, 290), (295, 305))
    hot, hung, leak = ("thermal_throttle", "imbalance"), ("hollow_util", "imbalance"), ("mem_leak", "mem_pressure")
    table: dict[str, tuple[Pairs, Pairs]] = {
        **{
            f"a root of 100 s covers {end - 100} s": (pairs(wait, one), [("io_bound", "idle_gap")][: end <= 210])
            for end, one in within.items()
        },
        "several stretches together": (pairs(two, low), [("cpu_bound", "underutilised")]),
        **{
            f"a gap caused by {cause}": (pairs(cpu, finding("idle_gap", (100, 120), cause=cause)), [])
            for cause in ("checkpoint", "hang", "unknown", None)
        },
        "the same GPU": (pairs(heat, finding("imbalance", (10, 490))), [hot]),
        "another GPU": (pairs(heat, slow), []),
        "all GPUs by one": (pairs(heat, everywhere), []),
        "all by all": (pairs(finding("thermal_throttle", (0, 500), devices=NONE), everywhere), [hot]),
        "a hang and the odd rank": (pairs(hang, odd), [hung]),
        "launches and the odd rank": (pairs(replace(hang, cause="launch"), odd), []),
        "the whole run": (pairs(finding("pcie_degraded"), copies), [("pcie_degraded", "transfer_bound")]),
        "an unused GPU": (pairs(finding("unused_gpu"), unused), [("unused_gpu", "idle_gap")]),
        "less than the whole run": (pairs(finding("power_limited", (0, 100)), finding("power_cap")), []),
        "the first that the kind names": (pairs(storage, cpu, data), [("cpu_bound", "idle_gap")]),
        "in any order": (pairs(cpu, storage, data), [("cpu_bound", "idle_gap")]),
        "lost somewhere": (pairs(finding("gpu_lost", (500, 600), devices=NONE, cause="lost"), gap), []),
        "lost sometime": (pairs(finding("gpu_lost", devices=ONE, cause="lost"), gap), []),
        "an Xid of the application": (pairs(finding("gpu_lost", (500, 600), devices=ONE, cause="xid"), gap), []),
        "leaks of both": (pairs(*leaks, full), [leak]),
        "a leak of one": (pairs(leaks[0], full), []),
        "heat at another time": (pairs(*apart, finding("imbalance", (500, 600))), []),
        "heat of both": (pairs(*apart, capped), [("thermal_throttle", "power_cap")]),
        "a hot straggler": (pairs(waiting, slow, hot_one), [("thermal_throttle", "hollow_util"), hot]),
        "a straggler": (pairs(waiting, slow), [("imbalance", "hollow_util")]),
    }
    assert {name: got for name, (got, expected) in table.items() if got != expected} == {}


def test_a_lost_gpu_explains_what_comes_after() -> None:
    lost = finding("gpu_lost", (500, 600), devices=ONE, cause="lost")
    after = finding("idle_gap", (505, 900), devices=ONE, cause="peers busy")
    before = finding("idle_gap", (100, 120), devices=ONE, cause="unknown")
    peers = finding("hollow_util", (510, 900), devices=ZERO, cause="hang")
    odd = finding("imbalance", (510, 890), devices=ZERO)
    assert [one.root is not None for one in linked(lost, after, before, peers)] == [False, True, False, True]
    top = linked(peers, odd, replace(lost, intervals=(Interval(at(500), at(1000)),)))
    assert [one.root for one in top] == [top[2].fingerprint, top[2].fingerprint, None], "there is one level"


def test_links_have_two_ends_and_the_graver_severity() -> None:
    wait, gap = finding("cpu_bound", (100, 200), cause="data"), finding("idle_gap", (110, 120), cause="data", lost=10)
    root, other = linked(wait, gap)
    assert (root.consequences, root.root) == ((gap.fingerprint,), None)
    assert (other.consequences, other.root) == ((), wait.fingerprint)
    assert (other.intervals, other.lost_gpu_seconds, other.severity) == (gap.intervals, 10, gap.severity)
    link = finding("pcie_degraded", (0, 500))
    for severity, expected in ((Severity.PROBLEM, ["problem", "problem"]), (Severity.INFO, ["warning", "info"])):
        wait = replace(finding("transfer_bound", (10, 400)), severity=severity)
        assert [str(one.severity) for one in linked(link, wait)] == expected


def test_the_links_have_no_circle() -> None:
    links = [(name, root) for name, kind in KINDS.items() for root in kind.follows]

    def next_of(root: RootCause) -> list[tuple[str, RootCause]]:
        return [
            (name, other)
            for name, other in links
            if name == root.kind and (not root.causes or not other.explains or set(root.causes) & set(other.explains))
        ]

    def is_circle(root: RootCause, seen: tuple[RootCause, ...] = ()) -> bool:
        return root in seen or any(is_circle(other, (*seen, root)) for _, other in next_of(root))

    assert [(name, root.kind) for name, root in links if is_circle(root)] == []


NAMES = sorted({kind for name, one in KINDS.items() for root in one.follows for kind in (root.kind, name)})
ANY = st.builds(
    lambda kind, cause, start, length, devices: finding(kind, (start, start + length), cause=cause, devices=devices),
    st.sampled_from(NAMES),
    st.sampled_from(["data", "io", "hang", "unused", "checkpoint", None]),
    st.integers(0, 500),
    st.integers(0, 400),
    st.sampled_from([NONE, ZERO, ONE, (*ZERO, *ONE)]),
)


@given(st.lists(ANY, max_size=12))
def test_links_are_whole_and_one_level_deep(findings: list[Finding]) -> None:
    made = linked(*findings)
    assert [one.fingerprint for one in made] == [one.fingerprint for one in findings]
    tops = {one.fingerprint for one in made if one.root is None}
    assert [one for one in made if one.root is not None and (one.root not in tops or one.consequences)] == []
    listed = {name for one in made for name in one.consequences}
    assert {one.fingerprint for one in made if one.root is not None} == listed

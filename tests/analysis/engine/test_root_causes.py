"""One cause is told once: which findings follow from which."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis import RULES
from gpureport.analysis.engine import root_causes
from gpureport.analysis.engine.root_causes import Link
from gpureport.testing import Finding, Interval, Severity, analyze, at, finding, recording, steps

WHOLE = Interval(at(0), at(1000))
GPUS = ["gpu:0", "gpu:1"]


def _linked(*findings: Finding) -> tuple[Finding, ...]:
    return root_causes.link_findings(findings, RULES, WHOLE, GPUS)


def _pairs(*findings: Finding) -> list[tuple[str, str]]:
    """Return root and consequence by kind."""
    linked = _linked(*findings)
    named = {found.fingerprint: found.kind for found in linked}
    return [(named[found.root], found.kind) for found in linked if found.root]


def test_a_gap_within_a_wait_follows_from_it() -> None:
    """Root and consequence name each other; everything else of both stays."""
    wait, gap = finding("cpu_bound", (100, 200), cause="data"), finding("idle_gap", (110, 120), cause="data", lost=10)
    root, other = _linked(wait, gap)
    assert (root.consequences, root.root) == ((gap.fingerprint,), None)
    assert (other.consequences, other.root) == ((), wait.fingerprint)
    assert (other.intervals, other.lost_gpu_seconds, other.severity) == (gap.intervals, 10, gap.severity)


@pytest.mark.parametrize(("end", "follows"), [(209, True), (210, True), (212, False), (400, False)])
def test_a_consequence_lies_within_its_root_for_nine_tenths(end: float, *, follows: bool) -> None:
    """A hundred seconds of root cover a gap of 110 s, and none much longer."""
    wait, gap = finding("io_bound", (100, 200), cause="io"), finding("idle_gap", (100, end), cause="io")
    assert bool(_pairs(wait, gap)) is follows


def test_several_stretches_count_together() -> None:
    """What matters is the time in all, on both sides."""
    wait = finding("cpu_bound", (0, 100), (200, 300))
    low = finding("underutilised", (10, 90), (210, 290), (295, 305))
    assert _pairs(wait, low) == [("cpu_bound", "underutilised")]


@pytest.mark.parametrize("cause", ["checkpoint", "hang", "unknown", None])
def test_a_gap_with_another_cause_is_its_own(cause: str | None) -> None:
    """A checkpoint within a CPU-bound phase is no wait for data."""
    assert _pairs(finding("cpu_bound", (0, 500)), finding("idle_gap", (100, 120), cause=cause)) == []


def test_another_gpu_is_another_matter() -> None:
    """Heat on one GPU does not explain what its peer does; a finding on all GPUs is not explained by one."""
    heat = finding("thermal_throttle", (0, 500), devices=("gpu:0",))
    same, peer, every = (finding("imbalance", (10, 490), devices=devices) for devices in (("gpu:0",), ("gpu:1",), ()))
    assert _pairs(heat, same) == [("thermal_throttle", "imbalance")]
    assert _pairs(heat, peer) == []
    assert _pairs(heat, every) == []
    assert _pairs(finding("thermal_throttle", (0, 500), devices=()), every) == [("thermal_throttle", "imbalance")]


def test_a_hang_explains_the_gpu_that_differs() -> None:
    """The odd rank is not among those that wait in the collective; without a hang the two are unrelated."""
    odd = finding("imbalance", (110, 390), devices=("gpu:1",))
    waiting = finding("hollow_util", (100, 400), devices=("gpu:0",), cause="hang")
    assert _pairs(waiting, odd) == [("hollow_util", "imbalance")]
    assert _pairs(finding("hollow_util", (100, 400), devices=("gpu:0",), cause="launch"), odd) == []


def test_a_lost_gpu_explains_what_comes_after() -> None:
    """Its idle time and the hang of its peers from the event on, not what was before."""
    lost = finding("gpu_lost", (500, 600), devices=("gpu:1",), cause="lost")
    after = finding("idle_gap", (505, 900), devices=("gpu:1",), cause="peers busy")
    before = finding("idle_gap", (100, 120), devices=("gpu:1",), cause="unknown")
    peers = finding("hollow_util", (510, 900), devices=("gpu:0",), cause="hang")
    linked = _linked(lost, after, before, peers)
    assert [found.root is not None for found in linked] == [False, True, False, True]


def test_consequences_of_consequences_go_to_the_top() -> None:
    """There is one level: the hang of a lost GPU's peers brings its own consequences along."""
    lost = finding("gpu_lost", (500, 1000), devices=("gpu:1",), cause="no answer")
    hang = finding("hollow_util", (510, 900), devices=("gpu:0",), cause="hang")
    odd = finding("imbalance", (510, 890), devices=("gpu:0",))
    linked = _linked(hang, odd, lost)
    assert [found.root for found in linked] == [lost.fingerprint, lost.fingerprint, None]
    assert linked[2].consequences == (hang.fingerprint, odd.fingerprint)


def test_whole_run_findings_cover_everything() -> None:
    """A finding without intervals stands for the run."""
    assert _pairs(finding("pcie_degraded"), finding("transfer_bound", (10, 50))) == [
        ("pcie_degraded", "transfer_bound")
    ]
    assert _pairs(finding("unused_gpu"), finding("idle_gap", (0, 1000), cause="unused")) == [("unused_gpu", "idle_gap")]
    assert _pairs(finding("power_limited", (0, 100)), finding("power_cap")) == []


def test_one_finding_has_one_root() -> None:
    """Where several fit, the first that the kind names is taken, whatever the order of the findings."""
    gap = finding("idle_gap", (110, 120), cause="data")
    roots_of = [finding("io_bound", (0, 500)), finding("cpu_bound", (0, 500))]
    assert _pairs(*roots_of, gap) == _pairs(*reversed(roots_of), gap) == [("cpu_bound", "idle_gap")]


def test_the_links_have_no_circle() -> None:
    """No kind leads to itself, by however many links."""
    links = list(root_causes.list_links(RULES))

    def next_of(link: Link) -> list[Link]:
        return [
            other
            for other in links
            if other.root.kind == link.consequence
            and (not other.root.causes or not link.root.explains or set(other.root.causes) & set(link.root.explains))
        ]

    def deep(link: Link, seen: tuple[Link, ...] = ()) -> bool:
        return link in seen or any(deep(other, (*seen, link)) for other in next_of(link))

    assert [link for link in links if deep(link)] == []


def test_a_gpu_that_is_lost_somewhere_explains_nothing() -> None:
    """Without its device or its time it could be any; an Xid of the application is no loss."""
    gap = finding("idle_gap", (505, 900), devices=("gpu:1",))
    for lost in (
        finding("gpu_lost", (500, 600), devices=(), cause="lost"),
        finding("gpu_lost", devices=("gpu:1",), cause="lost"),
        finding("gpu_lost", (500, 600), devices=("gpu:1",), cause="xid"),
    ):
        assert _pairs(lost, gap) == []


def test_findings_of_one_kind_and_cause_are_one_root() -> None:
    """Leaks on both GPUs explain memory that both fill; one alone does not, nor does heat at another time."""
    leaks = [finding("mem_leak", (0, 1000), devices=(device,)) for device in GPUS]
    full = finding("mem_pressure", devices=tuple(GPUS))
    assert _pairs(*leaks, full) == [("mem_leak", "mem_pressure")]
    assert _pairs(leaks[0], full) == []
    heat = [finding("thermal_throttle", (0, 100)), finding("thermal_throttle", (500, 600), devices=("gpu:1",))]
    assert _pairs(*heat, finding("imbalance", (500, 600))) == []
    held = finding("power_cap", (0, 100), (500, 600), devices=tuple(GPUS))
    assert _pairs(*heat, held) == [("thermal_throttle", "power_cap")]


def test_a_straggler_explains_why_the_others_wait() -> None:
    """Heat on one GPU makes it slow, which makes the others wait: one cause, told once."""
    heat = finding("thermal_throttle", (0, 500), devices=("gpu:1",))
    slow = finding("imbalance", (10, 490), devices=("gpu:1",))
    waiting = finding("hollow_util", (10, 490), devices=("gpu:0",), cause="straggler")
    assert _pairs(waiting, slow, heat) == [("thermal_throttle", "hollow_util"), ("thermal_throttle", "imbalance")]
    assert _pairs(waiting, slow) == [("imbalance", "hollow_util")]


_KINDS = sorted({kind for link in root_causes.list_links(RULES) for kind in (link.root.kind, link.consequence)})
_ANY = st.builds(
    lambda kind, cause, start, length, devices: finding(kind, (start, start + length), cause=cause, devices=devices),
    st.sampled_from(_KINDS),
    st.sampled_from(["data", "io", "hang", "unused", "checkpoint", None]),
    st.integers(0, 500),
    st.integers(0, 400),
    st.sampled_from([(), ("gpu:0",), ("gpu:1",), ("gpu:0", "gpu:1")]),
)


@given(st.lists(_ANY, max_size=12))
def test_links_are_whole_and_one_level_deep(findings: list[Finding]) -> None:
    """Every root is found and lists what follows from it; no root follows from another."""
    linked = _linked(*findings)
    assert [found.fingerprint for found in linked] == [found.fingerprint for found in findings]
    tops = {found.fingerprint for found in linked if found.root is None}
    for found in linked:
        if found.root is not None:
            assert found.root in tops
            assert found.consequences == ()
    listed = {name for found in linked for name in found.consequences}
    assert {found.fingerprint for found in linked if found.root is not None} == listed


def test_gaps_within_a_cpu_bound_phase_are_linked_in_an_analysis() -> None:
    """The analysis marks them, and a gap outside stays on its own."""
    util = steps((97, 300), (30, 200), (0, 20), (30, 200), (97, 300), (0, 20), (97, 100))
    cpu = steps((20, 300), (95, 420), (20, 420))
    analysis = analyze(recording(util=util, cpu=cpu))
    (wait,) = (found for found in analysis.findings if found.kind == "cpu_bound")
    gaps = {found.cause: found.root for found in analysis.findings if found.kind == "idle_gap"}
    assert gaps == {"data": wait.fingerprint, "unknown": None}


def test_a_root_is_as_severe_as_what_it_led_to() -> None:
    """Whoever reads roots alone misses no problem; a milder consequence stays what it is."""
    link = finding("pcie_degraded", (0, 500))
    wait = replace(finding("transfer_bound", (10, 400)), severity=Severity.PROBLEM)
    linked = _linked(link, wait)
    assert [found.severity for found in linked] == [Severity.PROBLEM, Severity.PROBLEM]
    mild = replace(wait, severity=Severity.INFO)
    assert [found.severity for found in _linked(link, mild)] == [Severity.WARNING, Severity.INFO]

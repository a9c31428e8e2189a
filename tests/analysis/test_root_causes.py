"""Which findings follow from which, on findings made by hand: no log holds each pair of kinds at will."""

import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.account.answers import link_findings
from gpureport.analysis.rulebook import KINDS, RootCause
from gpureport.testing import Finding, Interval, Severity, at, finding
from tests.support.tables import read_table

WHOLE, GPUS = Interval(at(0), at(1000)), ["gpu:0", "gpu:1"]
ZERO, ONE, NONE = ("gpu:0",), ("gpu:1",), ()
FORM = re.compile(r"(\w+)(?:\((.*)\))?(.*)")


def linked(*findings: Finding) -> tuple[Finding, ...]:
    return link_findings(findings, WHOLE, GPUS)


def parse(text: str) -> Finding:
    """Return the finding that a text like `idle_gap(data) 110-120 gpu:1` states; it is of GPU 0 if nothing is said."""
    kind, cause, more = FORM.fullmatch(text).groups()  # type: ignore[union-attr]  # a text of another form is a mistake
    words = more.split()
    spans = [(float(start), float(end)) for start, _, end in (word.partition("-") for word in words if "-" in word)]
    devices = tuple(word for word in words if ":" in word) or (NONE if "job" in words else ZERO)
    return finding(kind, *spans, cause=cause, devices=devices)


def test_what_follows_from_what() -> None:
    for name, findings, expected in read_table(Path(__file__).with_name("root_causes.tsv")):
        made = linked(*map(parse, findings.split("; ")))
        named = {one.fingerprint: one.kind for one in made}
        assert ", ".join(f"{named[one.root]} > {one.kind}" for one in made if one.root) == expected.strip("-"), name


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

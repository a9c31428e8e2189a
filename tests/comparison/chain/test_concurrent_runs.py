"""Runs that shared GPUs while they ran."""

from dataclasses import replace

from gpureport.comparison.chain.concurrent_runs import find_concurrent_runs
from gpureport.report.sections.head.recording_doubts import describe_concurrent_runs
from gpureport.testing import Device, Run, recording

MINUTE = 60_000_000
BASE = replace(recording(util=[[0.5] * 60] * 2).run, timezone="UTC")


def vary(name: str, *, minutes: int = 0, uuid: str | None = None, node: str | None = None) -> Run:
    """Return a run of ten minutes that began some minutes later, its GPUs with this identity."""
    start = minutes * MINUTE
    devices = tuple(Device(id=f"gpu:{index}", index=index, uuid=uuid and f"{uuid}-{index}") for index in range(2))
    tags = (("node", node),) if node else ()
    return replace(BASE, id=name, name=name, started=start, ended=start + 10 * MINUTE, devices=devices, tags=tags)


def test_two_runs_at_once_on_one_machine_are_not_comparable() -> None:
    """By uuid, or perhaps by node and number; GPUs without either, another node, and a short overlap are no ground."""
    found = describe_concurrent_runs([vary("a", uuid="GPU"), vary("b", uuid="GPU", minutes=1)])
    assert found == "a and b ran at the same time on the same 2 GPUs, so they are not comparable."
    # what one uuid tells is not in doubt because another GPU has none
    devices = (*vary("", uuid="GPU").devices[:1], *vary("").devices[1:])
    found = describe_concurrent_runs([replace(vary(name, node="n1"), devices=devices) for name in ("a", "b")])
    assert found == "a and b ran at the same time on the same GPU, so they are not comparable."
    # each job of a cluster may see one GPU of the node, as number 0
    found = describe_concurrent_runs([vary("a", node="n1"), vary("x", node="n2"), vary("b", node="n1", minutes=4)])
    assert found == "a and b ran at the same time on n1: if they shared GPUs, they are not comparable."
    for other in (
        [vary("a"), vary("b")],
        [vary("a", node="n1"), vary("b", node="n2")],
        [vary("a", node="n1"), vary("b", node="n1", minutes=6)],
        [vary("a", node="n1"), replace(vary("b", node="n1"), timezone=None)],
        [vary("a", node="n1"), vary("a", node="n1")],
    ):
        assert find_concurrent_runs(other) is None
    assert describe_concurrent_runs([]) == ""

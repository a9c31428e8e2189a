"""A run of many GPUs: nodes in rows, the troubled GPUs drawn, and nothing said once a node."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpureport import testing
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.testing import Recording, analyze

NODES, PER_NODE, SAMPLES = 3, 8, 120
HOT = 13


def on_nodes(recording: Recording, per_node: int) -> Recording:
    """Return a recording whose GPUs are spread over nodes in their order."""

    def rename(index: int) -> str:
        return f"node_{index // per_node + 1}/gpu:{index % per_node}"

    devices = [
        replace(gpu, id=rename(gpu.index or 0), index=(gpu.index or 0) % per_node, node=rename(gpu.index or 0)[:6])
        for gpu in recording.run.gpus
    ]
    names = map(str, recording.series.column("device").to_pylist())
    ids = pa.array([rename(int(name.removeprefix("gpu:"))) for name in names]).dictionary_encode()
    place = recording.series.schema.get_field_index("device")
    series = recording.series.set_column(place, recording.series.schema.field("device"), pa.chunked_array([ids]))
    return Recording(run=replace(recording.run, devices=tuple(devices)), series=series)


def report_on(nodes: Sequence[int]) -> Report:
    """Return the report on so many GPUs of each node, one of which is hot and slow."""
    count = sum(nodes)
    values = np.random.default_rng(1).normal(0, 1, (count, SAMPLES))
    hot = np.zeros((count, SAMPLES))
    hot[min(HOT, count - 1), 40:] = 1
    recording = testing.recording(
        every=10,
        util=np.clip(95 + values, 0, 100),
        power=350 + values,
        temperature=np.where(hot, 88, 60),
        clock=np.where(hot, 1100, 1410),
        sw_thermal_slowdown=hot,
    )
    recording = on_nodes(recording, nodes[0])
    return build([(recording, analyze(recording))], title=None, command="", gpu_hour_price=None, version="0")


@pytest.fixture(scope="module")
def many() -> Report:
    """Return the report on three nodes of eight GPUs."""
    return report_on([PER_NODE] * NODES)


def test_a_row_a_node_and_the_gpu_that_differs(many: Report) -> None:
    """Below its node stands the hot GPU; figures of a node are means and highest values."""
    table = many.gpus[0].table
    assert [row.head.text.replace("\u00a0", " ") for row in table.rows] == [
        "node_1, 8 GPUs",
        "node_2, 8 GPUs",
        "node_2 GPU 5",
        "node_3, 8 GPUs",
    ]
    hottest = table.columns.index("Temperature max") - 1
    assert [row.cells[hottest].value for row in table.rows] == [60, 88, 88, 60]
    assert "A row is a node" in table.note


def test_the_troubled_gpu_and_one_of_each_node_are_drawn(many: Report) -> None:
    """The others have no strip, and the page says so."""
    (run,) = many.timeline
    drawn = [strip.device for strip in run.strips]
    assert "node_2/gpu:5" in drawn
    assert {device.partition("/")[0] for device in drawn} == {"node_1", "node_2", "node_3"}
    assert run.undrawn_gpus == NODES * PER_NODE - len(drawn) > 0
    assert f"{len(drawn)} of 24 GPUs are drawn" in run.caption
    (fold,) = [fold.text for fold in many.folds if fold.name == "Timeline"]
    assert fold == f"every sample of {len(drawn)} of 24 GPUs, to zoom into"


def test_what_holds_for_each_node_is_said_once(many: Report) -> None:
    """A check has a line, and two where it came out otherwise on one node."""
    lines = many.answers[0].lines
    assert [line.group for line in lines if line.kind == "idle_gap"] == [""]
    (clear, found) = [line for line in lines if line.kind == "thermal_throttle"]
    assert (clear.outcome, found.outcome) == ("judged, nothing found", "found")
    assert found.group == "8 x NVIDIA A100-SXM4-80GB of node_2"


def test_few_gpus_have_rows_and_strips_of_their_own() -> None:
    """Sixteen are the most."""
    report = report_on([8, 8])
    assert len(report.gpus[0].table.rows) == len(report.timeline[0].strips) == 16
    assert report.timeline[0].undrawn_gpus == 0

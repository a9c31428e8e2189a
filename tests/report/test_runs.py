"""Pages of one run: many GPUs, stages, events of the log, times, what was read, and pictures of their own."""

import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import gpureport
from gpureport import testing
from gpureport.testing import AbsentCells, LogGap, Rejected, Stage, analyze, build_file, build_page, steps
from tests.support import runs
from tests.support.runs import event, page_of, plain, run, with_run

NODES, PER_NODE, SAMPLES, HOT = 3, 8, 120, 13


def on_nodes(recording: gpureport.Recording, per_node: int) -> gpureport.Recording:

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
    return gpureport.Recording(run=replace(recording.run, devices=tuple(devices)), series=series)


def page_of_nodes(*nodes: int) -> dict[str, Any]:
    count = sum(nodes)
    values = np.random.default_rng(1).normal(0, 1, (count, SAMPLES))
    hot = np.zeros((count, SAMPLES))
    hot[min(HOT, count - 1), 40:] = 1
    made = testing.recording(
        every=10,
        util=np.clip(95 + values, 0, 100),
        power=350 + values,
        temperature=np.where(hot, 88, 60),
        clock=np.where(hot, 1100, 1410),
        sw_thermal_slowdown=hot,
    )
    return page_of(on_nodes(made, nodes[0]))


def test_many_gpus_are_told_by_node_but_for_the_one_that_differs() -> None:
    page = page_of_nodes(*[PER_NODE] * NODES)
    table = page["gpus"][0]["table"]
    names = ["node_1, 8 GPUs", "node_2, 8 GPUs", "node_2 GPU 5", "node_3, 8 GPUs"]
    assert [plain(row["head"]["text"]) for row in table["rows"]] == names
    hottest = table["columns"].index("Temperature max") - 1
    assert [row["cells"][hottest]["value"] for row in table["rows"]] == [60, 88, 88, 60]
    (timeline,) = page["timeline"]
    drawn = [strip["device"] for strip in timeline["strips"]]
    assert "node_2/gpu:5" in drawn
    assert {device.partition("/")[0] for device in drawn} == {"node_1", "node_2", "node_3"}
    assert timeline["undrawn_gpus"] == NODES * PER_NODE - len(drawn) > 0
    # a check has a line, and two where it came out otherwise on one node
    lines = page["answers"][0]["lines"]
    assert [line["group"] for line in lines if line["kind"] == "idle_gap"] == [""]
    found = {line["group"]: line["outcome"] for line in lines if line["kind"] == "thermal_throttle"}
    assert sorted(found.values()) == ["found", "judged, nothing found"]
    made = testing.recording(util=[steps((95, 120))] * 5 + [steps((3, 120))])
    assert "5 other GPUs" in build_page([analyze(on_nodes(made, 2))])
    few = page_of_nodes(8, 8)
    assert len(few["gpus"][0]["table"]["rows"]) == len(few["timeline"][0]["strips"]) == 16
    assert few["timeline"][0]["undrawn_gpus"] == 0


def staged(*names: str, util: Any) -> gpureport.Recording:
    made = testing.recording(util=util, every=10.0)
    known = tuple(dict.fromkeys(names))
    column = pa.array(names).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string()))
    ends = {name: (names.index(name), len(names) - 1 - names[::-1].index(name)) for name in known}
    stages = tuple(
        Stage(name=name, start=testing.at(10.0 * first), end=testing.at(10.0 * last))
        for name, (first, last) in ends.items()
    )
    return with_run(made, stages=stages).with_series(made.series.append_column("stage", column))


def test_stages_have_a_row_each_in_every_format() -> None:
    made = staged(*["preprocessing"] * 6, *["train <b>"] * 12, util=[*steps((0, 6), (90, 12))])
    (table,) = page_of(made)["stages"]
    rows = {row["head"]["text"]: [plain(cell["text"]) for cell in row["cells"]] for row in table["table"]["rows"]}
    assert {name: cells[:3] for name, cells in rows.items()} == {
        "preprocessing": ["1 min", "0%", "100%"],
        "train <b>": ["2 min", "90%", "0%"],
    }
    assert rows["preprocessing"][5] == "not recorded"
    assert re.search(r"^ +preprocessing +1 min +0% +100%", build_page(made, "txt", full=True), re.MULTILINE)
    assert "train &lt;b&gt;" in build_page(made, "html")
    assert page_of(staged(*["training"] * 6, util=[50.0] * 6))["stages"] == []


EVENTS = (
    event("driver_message", 30, "NVRM: Xid 79", line=33),
    event("gpu_lost", 100, "GPU is <lost>", line=102, device="gpu:1"),
    event("gpu_lost", 101, "GPU is lost", line=103, device="gpu:0"),
    event("driver_restart", 200, "550.54 -> 560.1", line=210),
    event("no_devices", None, "No devices were found"),
)


def told(*events: Any, **quality: Any) -> gpureport.Recording:
    util = steps((0, 20), (97, 280))
    made = testing.recording(util=[util, util], times=[*range(100), *range(150, 350)])
    return testing.with_quality(made, log_events=events, events=len(events), coverage_ratio=0.9, **quality)


def test_events_of_a_log_have_number_time_gpu_and_line_in_every_format() -> None:
    made = told(*EVENTS)
    (quality,) = page_of(made)["quality"]
    times = {"E1": 30.0, "E2": 100.0, "E3": 101.0, "E4": 200.0, "E5": None}
    assert {entry["id"]: entry["at"] for entry in quality["events"]} == times
    page, text = build_page(made, "html"), build_page(made, "txt", full=True)
    for line in (33, 102, 103, 210):
        assert f"(line {line})" in page, line
        assert f"(line {line})" in plain(text), line
    assert "GPU is &lt;lost&gt;" in page
    (marks,) = [line for line in text.splitlines() if line.startswith("  events ")]
    assert marks.count("^") == 3
    # of too many plain messages give way
    many = [*(event("driver_message", place, f"m{place}") for place in range(40)), event("gpu_lost", 90)]
    (quality,) = page_of(told(*many))["quality"]
    assert len(quality["events"]) == 20
    assert quality["events"][-1]["name"] != quality["events"][0]["name"]
    assert "21" in quality["more_events"]


def test_every_line_of_a_dirty_log_is_accounted_for() -> None:
    made = run()
    rows = made.run.quality.rows_kept - 60
    made = testing.with_quality(
        made,
        lines=rows + 4,
        rows_kept=rows,
        rejected=(Rejected(reason="truncated line", rows=2, first_line=811),),
        events=1,
        absent_cells=(AbsentCells(column="gpu_fan_ratio", reason="N/A", cells=rows),),
        gaps=(LogGap(device="gpu:0", start=testing.at(300), end=testing.at(360)),),
        coverage_ratio=0.95,
        notes=("Times are the local time of the recording machine.",),
    )
    (quality,) = page_of(made)["quality"]
    said = plain(" ".join([*(fact["text"] for fact in quality["facts"]), *quality["notes"]]))
    for figure in ("1,146 read = 1,142 kept as samples + 2 rejected + 1 header", "1 min", "811", "1,142"):
        assert figure in said, (figure, said)
    for form in ("html", "txt"):
        words = plain(build_page(made, form, full=True).replace("<wbr>", ""))
        assert "1,146 read = 1,142 kept as samples + 2 rejected" in words, form


def test_a_gpu_without_values_and_model_has_words_and_no_figures() -> None:
    made = testing.recording(util=[[97.0] * 300, [np.nan] * 300], power=[[350.0] * 300, [np.nan] * 300])
    first, second = made.run.gpus
    made = with_run(made, devices=(first, replace(second, model=None)))
    page = page_of(made)
    rows = {row["head"]["text"]: row["cells"] for row in page["gpus"][0]["table"]["rows"]}
    assert {cell["value"] for cell in rows["GPU 1"]} == {None}
    strips = {strip["label"]: strip for strip in page["timeline"][0]["strips"]}
    assert [value for value in strips["GPU 1"]["mean"] if value is not None] == []
    assert strips["GPU 1"]["gaps"] == [[0.0, 299.0]]
    for form in ("html", "json", "md", "txt", "svg", "pdf", "png"):
        assert build_file(made, form), form


def test_times_that_no_log_gave_and_time_without_a_job() -> None:
    made = told(*EVENTS, synthetic_time=True)
    for form in ("html", "txt", "md"):
        assert "2026-" not in build_page(made, form, full=True), form
    facts = {fact["name"]: fact["text"] for fact in page_of(made)["quality"][0]["facts"]}
    assert (facts["Coverage"], "Longest gap" in facts) == ("not recorded", False)
    util = steps((97, 600), (0, 1800), (97, 600))
    memory, power = (steps((most, 600), (least, 1800), (most, 600)) for most, least in ((40, 0), (350, 60)))
    page = page_of(testing.recording(util=util, memory=memory, power=power))
    bars = [bar for bar in page["gpu_time"] if bar["no_job_seconds"]]
    assert bars
    for bar in bars:
        assert bar["no_job_seconds"] == pytest.approx(1800, abs=5)
        assert sum(part["seconds"] for part in bar["parts"]) == pytest.approx(1200, abs=5)


def test_a_worst_gpu_is_drawn_with_its_limit() -> None:
    for name, quantity, gpu in (
        ("thermal_throttle", "Temperature", "GPU 2"),
        ("cpu_bound", "CPU", "GPU 0"),
        ("mem_leak", "GPU memory", "GPU 0"),
        ("power_limited", "Power", "GPU 0"),
    ):
        worst = runs.sample_page(name)["worst"]
        assert worst["gpu"] == gpu, name
        assert any(quantity in panel["quantity"] for panel in worst["panels"]), name
        assert worst["start"] < worst["end"], name
    assert page_of(run(seconds=0))["worst"] is None


@pytest.mark.slow
def test_pictures_stand_alone() -> None:
    for results in (runs.sample("thermal_throttle"), runs.recorded_steps(), run(seconds=0)):
        svg = build_page(results, "svg")
        tags = [element.tag.rpartition("}")[2] for element in ET.fromstring(svg).iter()]  # noqa: S314 - our own
        assert (tags[0], {"script", "foreignObject", "image"} & {*tags}) == ("svg", set())
        assert not re.search(r"https?://(?!www\.w3\.org)|#0102", svg)
        assert build_file(results, "png").startswith(b"\x89PNG")


def test_gaps_are_those_of_the_log_and_what_was_read_is_said() -> None:
    made = testing.recording(util=[97.0] * 200, times=[*range(100), *range(160, 260)])
    (strip,) = page_of(made)["timeline"][0]["strips"]
    (gap,) = strip["gaps"]
    assert gap == pytest.approx([99, 160], abs=1.5)
    page = page_of(*runs.recorded_steps())
    assert plain(page["subtitle"]).startswith("1-starved → 5-larger-batch")
    content = json.dumps(page, ensure_ascii=False)
    assert all(f"{step}/{place}" in content for step in runs.STEPS for place in (1, 2, 3))

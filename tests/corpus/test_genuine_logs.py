"""Genuine logs that other people published, read where they lie: what is read is what is written, and labelled."""

import csv
import re
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.testing import Floats, Recording, Verdict
from tests.genuine import CORPUS, needs_corpus

pytestmark = [pytest.mark.corpus, needs_corpus]
UTILISATION, POWER, CELSIUS = "gpu_utilization_ratio", "gpu_power_watts", "gpu_temperature_celsius"
USED, TOTAL, GRAPHICS = "gpu_memory_used_bytes", "gpu_memory_total_bytes", "gpu_graphics_clock_hertz"
CONTROLLER, MEMORY_CELSIUS = "gpu_memory_controller_ratio", "gpu_memory_temperature_celsius"
SM_CLOCK, MEMORY_CLOCK = "gpu_sm_clock_hertz", "gpu_memory_clock_hertz"
REFUSED = {
    *("DEEPGadget-GPU_CPU_temp_logger__temperature_log.txt", "Unshapendwarf-SlowFast__mvit32_base.out"),
    *("grantwilkins-energy-inference__timechart.csv", "harp-lab-MNMGDatalog__power_log.csv"),
    "michalaarne-create-FULL-BOT-new__nvidia_dmon.log",
    *("seongjunpark17-GPU-power-log__power_log.csv", "sklinderton-vit-real-vs-fake-faces__vit_train_599696.log"),
}
"""Without a time, of the host alone, or in columns of nobody's tool; each of the others must be read."""
QUERIED = {
    "utilization.gpu": (UTILISATION, 0.01),
    "utilization.memory": (CONTROLLER, 0.01),
    "memory.used": (USED, 2.0**20),
    "memory.total": (TOTAL, 2.0**20),
    "memory.free": ("gpu_memory_free_bytes", 2.0**20),
    "power.draw": (POWER, 1.0),
    "power.draw.instant": ("gpu_power_instant_watts", 1.0),
    "temperature.gpu": (CELSIUS, 1.0),
    "temperature.memory": (MEMORY_CELSIUS, 1.0),
    "clocks.current.sm": (SM_CLOCK, 1e6),
    "clocks.current.memory": (MEMORY_CLOCK, 1e6),
    "clocks.current.graphics": (GRAPHICS, 1e6),
    "pcie.link.width.current": ("pcie_link_width", 1.0),
}
"""Column of the series, and its unit, of the fields that most logs asked for."""
DMON = {3: (POWER, 1.0), 4: (CELSIUS, 1.0), 5: (MEMORY_CELSIUS, 1.0), 6: (UTILISATION, 0.01), 7: (CONTROLLER, 0.01)}
DMON |= {10: (USED, 2.0**20), 12: (MEMORY_CLOCK, 1e6), 13: (SM_CLOCK, 1e6), 14: ("pcie_receive_bytes_per_second", 1e6)}
CLOCKS = ("525", "1065", "1545", "2025", "3105")
LABELS = {"avg_power_w": (POWER, 1.0), "avg_gpu_util_pct": (UTILISATION, 0.01), "avg_temp_c": (CELSIUS, 1.0)}
LABELS |= {"avg_clock_mhz": (GRAPHICS, 1e6)}
ROW = re.compile(
    r"\|\s*(?:N/A|(\d+)%)\s+(\d+)C\s+P(\d+)\s+(\d+)W /\s*(\d+)W \|\s*(\d+)MiB /\s*(\d+)MiB \|\s*(\d+)%\s", re.ASCII
)
"""The second line of a GPU in a table, in the shape in which all of these have it."""


def listed(form: str) -> list[Path]:
    if not CORPUS.is_dir():
        return []
    rows = csv.DictReader((CORPUS / "INDEX.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
    paths = [CORPUS / row["local"] for row in rows if row["fmt"] == form]
    return [path for path in paths if path.name not in REFUSED]


@cache
def one(path: Path) -> Recording:
    (recording,) = gpureport.read(path)
    return recording


def values(recording: Recording, metric: str) -> Floats:
    """Return a column of all devices, sorted, cells without a value last."""
    column = recording.series.column(metric).cast(pa.float64()).to_numpy()
    return np.asarray(np.sort(column), dtype=np.float64)


def test_every_log_is_read_and_analysed_or_refused() -> None:
    refused = set()
    for path in sorted((CORPUS / "corpus").iterdir()):
        try:
            recording = one(path)
        except SourceError:
            refused.add(path.name)
            continue
        quality = recording.run.quality
        assert quality.accounted, path.name
        assert quality.lines == sum(bool(line.strip()) for line in path.read_bytes().split(b"\n")), path.name
        assert gpureport.analyze(recording).run == recording.run, path.name
    assert refused == REFUSED


@pytest.mark.parametrize("path", listed("query-gpu csv"), ids=lambda path: path.name)
def test_no_value_of_a_query_is_invented(path: Path, tmp_path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    header, *lines = [line for line in content.splitlines() if line.strip()]
    names = [cell.strip().partition(" [")[0] for cell in header.split(",")]
    rows = [line.split(",") for line in lines if line.count(",") == len(names) - 1 and line != header]
    if not content.endswith("\n") and lines[-1].split(",") == rows[-1]:
        rows[-1][-1] = ""
    recording = one(path)
    known = {name: QUERIED[name] for name in names if name in QUERIED}
    assert known
    for name, (metric, scale) in known.items():
        numbers = [re.search(r"-?\d+(?:\.\d+)?", row[names.index(name)]) for row in rows]
        expected = [scale * float(number[0]) if number else np.nan for number in numbers]
        np.testing.assert_allclose(values(recording, metric), np.sort(expected), rtol=1e-6, err_msg=name)
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(f"{line}\n" for line in content.splitlines() if line != header), encoding="utf-8")
    (again,) = gpureport.read(bare, columns=names)
    assert again.series.num_rows == recording.series.num_rows
    for metric, _ in known.values():
        np.testing.assert_array_equal(values(again, metric), values(recording, metric), err_msg=metric)


def test_every_alias_of_a_field_is_the_same_column(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    text = (CORPUS / "FIELDS.tsv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        names = {row["canonical"], row["header_form_R610"], *re.split(r"[\s,|]+", row["aliases"])} - {""}
        read = {}
        for name in names - {"timestamp", "index"}:
            lines = (f"2026/03/14 09:00:0{second}.000, 0, 90 %, 1" for second in range(3))
            path.write_text("\n".join([f"timestamp, index, utilization.gpu [%], {name}", *lines]), encoding="utf-8")
            (recording,) = gpureport.read(path)
            device = recording.run.devices[0]
            read[name] = (recording.series.column_names, device.uuid, device.model, device.driver)
        assert all(one == other for one, other in pairwise(read.values())), read


@pytest.mark.parametrize("path", listed("ASCII table"), ids=lambda path: path.name)
def test_tables(path: Path) -> None:
    text, recording = path.read_text(encoding="utf-8"), one(path)
    written = [[float(cell or "nan") for cell in found] for found in ROW.findall(text)]
    assert recording.run.quality.rows_kept == len(written)
    columns = (CELSIUS, "gpu_performance_state", POWER, "gpu_power_limit_watts", USED, TOTAL, UTILISATION)
    for place, (metric, scale) in enumerate(zip(columns, (1, 1, 1, 1, 2**20, 2**20, 0.01), strict=True), 1):
        assert values(recording, metric) == pytest.approx(sorted(row[place] * scale for row in written)), metric
    stamps = re.findall(r"^\w{3} \w{3} +\d+ [\d:]{8} \d{4}(?= *$)", text, re.MULTILINE)
    first, last = (datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y") for stamp in (stamps[0], stamps[-1]))
    assert recording.run.ended - recording.run.started == (last - first).total_seconds() * 1_000_000
    assert len(written) == len(stamps) * len(recording.run.devices)


@pytest.mark.parametrize("path", listed("smi -q -x (XML)"), ids=lambda path: path.name)
def test_documents(path: Path) -> None:
    text, recording = path.read_text(encoding="utf-8"), one(path)
    quality = recording.run.quality
    assert quality.rows_kept == text.count("<gpu id=") == len(recording.run.devices)
    assert quality.rejected == ()
    for pattern, metric, scale in (
        (r"<gpu_util>(\d+) %", UTILISATION, 0.01),
        (r"<gpu_temp>(\d+) C", CELSIUS, 1),
        (r"<clocks>\s*<graphics_clock>\d+ MHz</graphics_clock>\s*<sm_clock>(\d+) MHz", SM_CLOCK, 1e6),
        (r"<fb_memory_usage>(?:\s*<\w+>\d+ MiB</\w+>)*?\s*<used>(\d+) MiB", USED, 2**20),
        (r"power_readings>\s*<power_state>.*?</power_state>.*?<\w*power_draw>(\d[\d.]*) W", POWER, 1),
    ):
        written = [float(number) * scale for number in re.findall(pattern, text, re.DOTALL)]
        found = values(recording, metric)
        assert found[~np.isnan(found)] == pytest.approx(sorted(written)[: len(recording.series)]), metric


@pytest.mark.parametrize("path", listed("multi-section capture"), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    text, recording = path.read_text(encoding="utf-8"), one(path)
    assert len(recording.run.devices) == 1
    tables = {float(row[5]) * 2**20 for row in ROW.findall(text)}
    queried = re.findall(r"FB Memory Usage\n(?: +\w+ +: \d+ MiB\n)*? +Used +: (\d+) MiB", text)
    assert len(queried) == len(ROW.findall(text)) == 2
    assert tables | {float(number) * 2**20 for number in queried} <= {*values(recording, USED).tolist()}


def test_logs_of_dmon() -> None:
    path = CORPUS / "corpus" / "essentialsofparallelcomputing-Chapter9__gpu_monitoring.log"
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for place, (metric, scale) in DMON.items():
        assert values(one(path), metric) == pytest.approx(sorted(float(row[place]) * scale for row in rows)), metric
    timeless = CORPUS / "corpus" / "michalaarne-create-FULL-BOT-new__nvidia_dmon.log"
    (recording,) = gpureport.read(timeless, interval=1)
    assert recording.run.quality.synthetic_time
    written = [0.46, 0.45, 0.46, 0.45, 0.46, 0.48, 0.47, 0.35, 0.04, 0.08]
    assert recording.series.column(UTILISATION).to_pylist() == pytest.approx(written)


def labelled(recording: Recording, step: str) -> Recording:
    return replace(recording, run=replace(recording.run, step=step))


@cache
def repetitions(clock: str) -> tuple[Recording, ...]:
    """Return three runs of one job at a locked clock, as repetitions of a step."""
    paths = sorted((CORPUS / "ab_pairs").glob(f"clk{clock}_r*.csv"))
    return tuple(labelled(one(path), clock) for path in paths)


def test_means_that_were_published_and_clocks_that_differ() -> None:
    text = (CORPUS / "ab_pairs" / "LABELS.csv").read_text(encoding="utf-8")
    known = {row["run_id"]: row for row in csv.DictReader(text.splitlines())}
    for recording in (run for clock in CLOCKS for run in repetitions(clock)):
        (statistics,) = gpureport.analyze(recording).statistics
        label = known[recording.run.name.removesuffix("_power")]
        for column, (metric, scale) in LABELS.items():
            summary = statistics.metric(metric)
            assert summary is not None
            assert f"{summary.sample_mean / scale:.4f}" == label[column], (recording.run.name, metric)
    comparison = gpureport.compare([run for clock in CLOCKS for run in repetitions(clock)])
    for before, after in pairwise(CLOCKS):
        found = {delta.metric: delta for delta in comparison.between(before, after)}
        for metric in (POWER, GRAPHICS):
            assert (found[metric].verdict, found[metric].basis) == (Verdict.DIFFERS, "replicates"), (after, metric)
        assert found[UTILISATION].verdict is Verdict.NO_CLEAR_CHANGE, after


@pytest.mark.parametrize("clock", CLOCKS)
def test_repetitions_set_against_each_other_give_no_verdict(clock: str) -> None:
    runs = repetitions(clock)
    splits = [([one], [other]) for one, other in permutations(runs, 2)]
    splits += [([one], [run for run in runs if run is not one]) for one in runs]
    for before, after in splits:
        sides = [*(labelled(run, "before") for run in before), *(labelled(run, "after") for run in after)]
        said = {delta.verdict for delta in gpureport.compare(sides).deltas}
        assert said <= {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}
    for same in (*([run] for run in runs), [*runs]):
        recorded = gpureport.compare([*same, *(labelled(run, "again") for run in same)]).deltas
        known = [delta for delta in recorded if delta.difference is not None]
        assert {delta.verdict for delta in known} == {Verdict.NO_CLEAR_CHANGE}
        assert all(delta.interval is None or delta.interval[0] <= 0 <= delta.interval[1] for delta in known)

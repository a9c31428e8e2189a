"""Genuine logs that other people published, read where they lie: what is read is what is written, and labelled."""

import csv
import re
from dataclasses import replace
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
from tests.support.tables import read_table

pytestmark = [pytest.mark.corpus, needs_corpus]
UTILISATION, POWER = "gpu_utilization_ratio", "gpu_power_watts"
CELSIUS, GRAPHICS = "gpu_temperature_celsius", "gpu_graphics_clock_hertz"
REFUSED = {name for (name,) in read_table(Path(__file__).with_name("refused.tsv"))}
"""Each of the others must be read."""
QUERIED = {field: (metric, float(unit)) for field, metric, unit in read_table(Path(__file__).with_name("queried.tsv"))}
"""Column of the series, and its unit, of the fields that most logs asked for."""
CLOCKS = ("525", "1065", "1545", "2025", "3105")
LABELS = {"avg_power_w": (POWER, 1.0), "avg_gpu_util_pct": (UTILISATION, 0.01), "avg_temp_c": (CELSIUS, 1.0)}
LABELS |= {"avg_clock_mhz": (GRAPHICS, 1e6)}


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


def labelled(recording: Recording, step: str) -> Recording:
    return replace(recording, run=replace(recording.run, step=step))


@cache
def repetitions(clock: str) -> tuple[Recording, ...]:
    """Return three runs of one job at a locked clock, as repetitions of a step."""
    paths = sorted((CORPUS / "ab_pairs").glob(f"clk{clock}_r*.csv"))
    return tuple(labelled(one(path), clock) for path in paths)


def test_means_that_were_published_and_clocks_that_differ() -> None:
    known = {row["run_id"]: row for row in csv.DictReader((CORPUS / "ab_pairs/LABELS.csv").read_text().splitlines())}
    known["clk1545_r2_20260419_092025"]["avg_power_w"] = "24.7678"  # without five readings of 310 W at rest
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

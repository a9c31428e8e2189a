"""Genuine logs that other people published; they are read where they lie, never part of the project."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from gpureport import columns, read
from gpureport.errors import SourceError
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.metrics import BY_NAME
from gpureport.testing import Recording, analyze
from tests.genuine import CORPUS, needs_corpus

pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
REFUSED = {
    "Unshapendwarf-SlowFast__mvit32_base.out": "no timestamp column",
    "harp-lab-MNMGDatalog__power_log.csv": "no timestamp column",
}
"""Logs that are refused, and why; each of the others must be read."""


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a tab-separated table, none when there is no corpus."""
    path = CORPUS / name
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")) if path.is_file() else []


LOGS = [CORPUS / row["local"] for row in table("INDEX.tsv") if row["fmt"].startswith("query-gpu csv")]
SCALE = {"1": 0.01, "By": 2.0**20, "W": 1.0, "Hz": 1e6, "Cel": 1.0, "s": 1e-6, "": 1.0}
"""What one of nvidia-smi's units is in base units."""
PAIRS = sorted((CORPUS / "ab_pairs").glob("clk*.csv")) if CORPUS.is_dir() else []


def one(path: Path) -> Recording:
    """Return the one run of a log."""
    (recording,) = read(path)
    return recording


def test_every_field_and_alias_is_known() -> None:
    """Every query field, with and without its unit, and every alias of it lead to the same column."""
    for row in table("FIELDS.tsv"):
        plain, headed = fields.parse_query_field(row["canonical"]), fields.parse_query_field(row["header_form_R610"])
        assert plain is not None
        assert headed is not None
        assert plain.target == headed.target
        for alias in row["aliases"].replace(",", " ").replace("|", " ").split():
            other = fields.parse_query_field(alias)
            assert other is not None
            assert other.target == plain.target


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_log_is_read_or_refused_in_words(path: Path) -> None:
    """A log is read with every line accounted for, or refused with the reason expected of it."""
    if path.name in REFUSED:
        with pytest.raises(SourceError, match=REFUSED[path.name]):
            one(path)
        return
    recording = one(path)
    assert recording.run.quality.accounted
    assert recording.run.quality.lines == sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))
    assert len(recording.series) == recording.run.quality.rows_kept
    assert analyze(recording).run == recording.run


def written(path: Path) -> tuple[Layout, list[list[str]]]:
    """Return the columns of a log and the cells of its rows, the last cell of a cut log emptied."""
    content = path.read_text(encoding="utf-8")
    header, *lines = [line for line in content.splitlines() if line.strip()]
    layout = QueryGpuDialect().header(header)
    assert layout is not None
    rows = [line.split(",") for line in lines if line.count(",") == len(layout.columns) - 1]
    if not content.endswith("\n") and lines[-1].split(",") == rows[-1]:
        rows[-1][-1] = ""
    return layout, rows


@pytest.mark.parametrize("path", [path for path in LOGS if path.name not in REFUSED], ids=lambda path: path.name)
def test_no_value_is_invented(path: Path) -> None:
    """Every number of every numeric column is the one in the log's text, and null where the text holds none."""
    series = one(path).series
    layout, rows = written(path)
    checked = 0
    for place, column in enumerate(layout.columns):
        metric = BY_NAME.get(column.target)
        if metric is None or metric.dtype == "bool":
            continue
        numbers = [re.search(r"-?\d+(?:\.\d+)?", row[place]) for row in rows]
        expected = [SCALE[metric.unit] * float(number[0]) if number else np.nan for number in numbers]
        found = columns.floats(series.column(column.target))
        np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-6)
        checked += 1
    assert checked > 0


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.name)
def test_published_means_come_out(path: Path) -> None:
    """The plain mean of the rows equals the mean their author published, to its printed digits."""
    labels = csv.DictReader((CORPUS / "ab_pairs" / "LABELS.csv").read_text(encoding="utf-8").splitlines())
    label = next(row for row in labels if path.name.startswith(row["run_id"]))
    (statistics,) = analyze(one(path)).statistics
    for column, metric, scale in (
        ("avg_power_w", "gpu_power_watts", 1.0),
        ("avg_gpu_util_pct", "gpu_utilization_ratio", 100.0),
        ("avg_clock_mhz", "gpu_graphics_clock_hertz", 1e-6),
        ("avg_temp_c", "gpu_temperature_celsius", 1.0),
    ):
        summary = statistics.metric(metric)
        assert summary is not None
        assert f"{summary.sample_mean * scale:.4f}" == label[column], metric

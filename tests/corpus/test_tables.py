"""Genuine tables and documents of nvidia-smi that other people published are read as a person reads them."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.testing import Recording
from tests.corpus.test_nvidia_smi import one, table
from tests.genuine import CORPUS, needs_corpus

pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
LOGS = {
    kind: [CORPUS / row["local"] for row in table("INDEX.tsv") if row["fmt"] == kind]
    for kind in ("ASCII table", "smi -q -x (XML)", "multi-section capture")
}
TIMELESS = {"influxdata-telegraf__gtx-1070-ti.xml"}
"""Documents without a time, which are refused."""
_ROW = re.compile(
    r"\|\s*(?:N/A|(\d+)%)\s+(\d+)C\s+P(\d+)\s+(\d+)W /\s*(\d+)W \|\s*(\d+)MiB /\s*(\d+)MiB \|\s*(\d+)%\s", re.ASCII
)
"""The second line of a GPU, in the shape in which all of these have it."""


def lines(path: Path) -> int:
    """Return how many lines of a file hold anything."""
    return sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))


def values(recording: Recording, metric: str) -> list[float]:
    """Return a column of all devices, sorted."""
    return sorted(columns.floats(recording.series.column(metric)).tolist())


@pytest.mark.parametrize("path", LOGS["ASCII table"], ids=lambda path: path.name)
def test_tables(path: Path) -> None:
    """Every row a person finds in the text is in the series with its values, and no other; every line is counted."""
    recording = one(path)
    quality = recording.run.quality
    written = [[float(cell or "nan") for cell in found] for found in _ROW.findall(path.read_text(encoding="utf-8"))]
    assert (quality.accounted, quality.lines, quality.rows_kept) == (True, lines(path), len(written))
    for place, metric, scale in (
        (1, "gpu_temperature_celsius", 1),
        (2, "gpu_performance_state", 1),
        (3, "gpu_power_watts", 1),
        (4, "gpu_power_limit_watts", 1),
        (5, "gpu_memory_used_bytes", 2**20),
        (6, "gpu_memory_total_bytes", 2**20),
        (7, "gpu_utilization_ratio", 0.01),
    ):
        assert values(recording, metric) == pytest.approx(sorted(row[place] * scale for row in written)), metric
    text = path.read_text(encoding="utf-8")
    stamps = re.findall(r"^\w{3} \w{3} +\d+ [\d:]{8} \d{4}(?= *$)", text, re.MULTILINE)
    first, last = (datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y") for stamp in (stamps[0], stamps[-1]))  # noqa: DTZ007 - no zone
    assert recording.run.ended - recording.run.started == (last - first).total_seconds() * 1_000_000
    assert len(written) == len(stamps) * len(recording.run.devices)


def test_a_loop_of_a_minute() -> None:
    """A log of 134 snapshots a minute apart is a series of 134 rows, a minute apart."""
    recording = one(CORPUS / "corpus" / "internationalJoke-aucurriculum__gpu_monitor.log")
    assert (len(recording.series), recording.run.interval, recording.run.quality.headers) == (134, 60.0, 134)
    (device,) = recording.run.devices
    assert (device.bus_id, device.model, device.driver) == ("00000000:31:00.0", "NVIDIA A40", "580.95.05")


@pytest.mark.parametrize("path", LOGS["smi -q -x (XML)"], ids=lambda path: path.name)
def test_documents(path: Path) -> None:
    """Every element of a GPU is a row with the values it states; every line is counted."""
    if path.name in TIMELESS:
        with pytest.raises(SourceError, match="have no time"):
            one(path)
        return
    recording = one(path)
    text = path.read_text(encoding="utf-8")
    quality = recording.run.quality
    assert (quality.accounted, quality.lines) == (True, lines(path))
    assert quality.rows_kept == text.count("<gpu id=") == len(recording.run.devices)
    assert quality.rejected == ()
    for pattern, metric, scale in (
        (r"<gpu_util>(\d+) %", "gpu_utilization_ratio", 0.01),
        (r"<gpu_temp>(\d+) C", "gpu_temperature_celsius", 1),
        (r"<clocks>\s*<graphics_clock>\d+ MHz</graphics_clock>\s*<sm_clock>(\d+) MHz", "gpu_sm_clock_hertz", 1e6),
        (r"<fb_memory_usage>(?:\s*<\w+>\d+ MiB</\w+>)*?\s*<used>(\d+) MiB", "gpu_memory_used_bytes", 2**20),
        (r"power_readings>\s*<power_state>.*?</power_state>.*?<\w*power_draw>(\d[\d.]*) W", "gpu_power_watts", 1),
    ):
        written = [float(number) * scale for number in re.findall(pattern, text, re.DOTALL)]
        assert values(recording, metric) == pytest.approx(sorted(written)[: len(recording.series)]), metric


@pytest.mark.parametrize("path", LOGS["multi-section capture"], ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    """The table, the text and the CSV of one moment in a capture say the same of its GPU."""
    recording = one(path)
    text = path.read_text(encoding="utf-8")
    assert recording.run.quality.accounted
    assert len(recording.run.devices) == 1
    used = columns.floats(recording.series.column("gpu_memory_used_bytes"))
    tables = [float(row[5]) * 2**20 for row in _ROW.findall(text)]
    queried = [
        float(number) * 2**20
        for number in re.findall(r"FB Memory Usage\n(?: +\w+ +: \d+ MiB\n)*? +Used +: (\d+) MiB", text)
    ]
    assert set(tables) | set(queried) <= set(used[~(used != used)].tolist())  # noqa: PLR0124 - NaN is not itself
    assert len(queried) == len(tables) == 2

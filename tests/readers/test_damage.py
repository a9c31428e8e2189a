"""Whatever is damaged in a log, reading ends in a recording that accounts for each line, or in one error."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Recording
from tests.readers import pairs
from tests.readers.pairs import PAIRS, check_account

JUNK = (
    b"\n",
    b"\0" * 9,
    b"\0" * 500,
    b",",
    b"\r",
    b'"',
    b"\xff\xfe",
    b"{",
    b"</gpu>\n",
    b"N/A",
    b"1e400",
    b"\n\n# gpu pwr\n",
)
WHOLE = {
    "nvidia_smi_q/a_loop_is_a_series.txt",
    "nvidia_smi_xml/a_loop_is_a_series.xml",
    "nvidia_smi_table/a_loop_is_a_series.txt",
    "nvidia_smi_monitors/dmon_headings_stand_anywhere.txt",
    "gpustat/captured_gpu_lost.txt",
    "dcgm/without_time_an_interval_is_needed_2.log",
}
"""Clean logs of which a part is read as it is in the whole."""
HOST = sorted(path.name for path in (PAIRS / "host").glob("captured_*") if path.suffix != ".json")


def read(path: Path, options: dict[str, Any]) -> Recording | None:
    """Return a log that was read and checked; None where it is refused."""
    try:
        recordings = gpureport.read(path, **options)
    except GpureportError:
        return None
    for recording in recordings:
        check_account(recording)
    return recordings[0]


def rows_of(recording: Recording) -> dict[tuple[object, object], dict[str, object]]:
    return {(row["device"], row["timestamp"]): row for row in recording.series.to_pylist()}


def assert_part(part: Recording, whole: Recording, what: str) -> None:
    """Assert that each row is one of the whole log, with no value that it does not have."""
    expected = rows_of(whole)
    for key, row in rows_of(part).items():
        assert key in expected, what
        assert all(value is None or value == expected[key].get(name) for name, value in row.items()), what


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_cut_invents_nothing(name: str, tmp_path: Path) -> None:
    pair = PAIRS / name
    options = json.loads(pairs.expectation(pair).read_text(encoding="utf-8")).get("options", {})
    content, path = pair.read_bytes(), tmp_path / "log"
    whole = read(pair, options)
    assert whole is not None
    found = 0
    for place in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:place])
        part = read(path, options)
        if part is not None:
            assert len(part.series) >= found, place
            found = len(part.series)
            assert_part(part, whole, f"cut at {place}")
    assert found >= 0.6 * len(whole.series)


@pytest.mark.parametrize("name", HOST)
def test_a_cut_log_of_a_machine_is_a_prefix(name: str, tmp_path: Path) -> None:
    pair = PAIRS / "host" / name
    stated = json.loads(pairs.expectation(pair).read_text(encoding="utf-8"))
    gpu = tmp_path / "gpu.csv"
    gpu.write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp}, 5 %\n" for stamp in stated["gpu"]))
    content, path = pair.read_bytes(), tmp_path / "host.log"
    options = stated.get("options", {})
    whole = read(gpu, {"host": pair, **options})
    assert whole is not None
    # cuts all over, and at each byte of a line
    middle = content.index(b"\n", len(content) // 2)
    for place in (*range(0, len(content), len(content) // 9), *range(middle, middle + 130, 13)):
        path.write_bytes(content[:place])
        part = read(gpu, {"host": path, **options})
        if part is not None:
            assert_part(part, whole, f"{name}: cut at {place}")


@pytest.mark.parametrize("source", sorted(path.name for path in PAIRS.iterdir()))
def test_damage_ends_in_an_account_or_an_error(source: str, tmp_path: Path) -> None:
    chance = random.Random(source)
    files = [pair for pair in pairs.list_pairs() if pair.parent.name == source and pair.is_file()]
    for pair in chance.sample(files, min(len(files), 20)):
        options = json.loads(pairs.expectation(pair).read_text(encoding="utf-8")).get("options", {})
        options = {name: value for name, value in options.items() if "{pair}" not in str(value)}
        data = bytearray(pair.read_bytes() or b"x")
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(data) + 1)
            data[place : place + chance.choice([0, 0, 1, 7, 40])] = chance.choice(JUNK)
        path = tmp_path / pair.name
        path.write_bytes(data)
        try:
            read(path, options)
        except Exception as error:
            error.add_note(f"{pair.name}: {bytes(data[:3000])!r}")
            raise

"""Damage costs what it damages: no GPU, no value and no other row."""

import json
import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Recording, Rejected, Run, analyze
from tests.readers import pairs
from tests.readers.pairs import PAIRS, assert_part, check_account
from tests.support.logs import HEADER, read_text, row, stamp
from tests.support.tables import read_table

JUNK = [b"\0" * 9, b"\0" * 500]
JUNK += [text.encode("latin-1") for text in json.loads(Path(__file__).with_name("junk.json").read_text())]
WHOLE = Path(__file__).with_name("whole.txt").read_text(encoding="utf-8").split()
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


@pytest.mark.parametrize("name", WHOLE)
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
    for pair in chance.sample(files, len(files)):
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


_CELLS = {
    "index": ["0", "1", "2", "3"],
    "uuid": [f"GPU-8f2c4a1{gpu}-0b6d-4c1e-9a57-3d2e1f0a9b8{gpu}" for gpu in range(4)],
    "pci.bus_id": [f"00000000:{17 + 16 * gpu:02X}:00.0" for gpu in range(4)],
    "serial": [f"132212302741{gpu}" for gpu in range(4)],
    "name": ["NVIDIA L40S"] * 4,
}
_SERIES = "utilization.gpu [%], memory.used [MiB]"


def _rows(columns: tuple[str, ...], gpus: int, ticks: int = 150) -> list[list[str]]:
    """Return the cells of a log of GPUs at work, with a row a second and GPU."""
    chance = random.Random(len(columns) + 10 * gpus)
    return [
        [
            stamp(tick + gpu / 500 + chance.uniform(0, 0.04)),
            *(_CELLS[column][gpu] for column in columns),
            f"{chance.randint(85, 99)} %",
            "20000 MiB",
        ]
        for tick in range(ticks)
        for gpu in range(gpus)
    ]


def _text(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [f"timestamp, {', '.join(columns)}, {_SERIES}", *(", ".join(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _account(folder: Path, text: str) -> tuple[list[str], list[str], float, Run]:
    recording = read_text(folder, text)
    analysis = analyze(recording)
    hours = sum(seconds for each in analysis.gpu_time for _, seconds in each.seconds) / 3600
    devices = [device.id for device in recording.run.devices]
    return devices, [finding.kind for finding in analysis.findings], hours, recording.run


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_one_damaged_cell_makes_no_gpu(tmp_path: Path, gpus: int, count: int) -> None:
    for columns in combinations(_CELLS, count):
        if gpus > 1 and columns == ("name",):
            continue
        rows = _rows(columns, gpus)
        sound = _account(tmp_path, _text(columns, rows))
        chance = random.Random(str(columns))
        for _ in range(6 // count):
            place, cell = chance.randrange(len(rows)), chance.randrange(len(columns)) + 1
            old = rows[place][cell]
            at = chance.randrange(len(old))
            new = old[:at] + chance.choice("0123456789abcXYZ#") + old[at + 1 :]
            damaged = [list(row) for row in rows]
            damaged[place][cell] = new
            devices, kinds, hours, run = _account(tmp_path, _text(columns, damaged))
            assert (devices, kinds) == sound[:2], (columns, place, old, new)
            assert hours == pytest.approx(sound[2], abs=gpus * 1.5 / 3600), (columns, place, old, new)
            assert run.quality.accounted


@pytest.mark.parametrize("every", [0.1, 1.0, 10.0], ids=["100 ms", "1 s", "10 s"])
@pytest.mark.parametrize("place", [0, 1, 57, 299])
def test_a_letter_of_a_name_where_the_place_in_the_tick_tells(tmp_path: Path, every: float, place: int) -> None:
    names = ["NVIDIA L40S"] * 300
    names[place] = "NVIDIA L4OS"
    rows = [f"{stamp(row // 2 * every + row % 2 / 500)}, {name}, {row % 2 * 9} %" for row, name in enumerate(names)]
    run = read_text(tmp_path, "\n".join(["timestamp, name, utilization.gpu [%]", *rows, ""])).run
    assert [(device.id, device.model) for device in run.devices] == [("gpu:0", "NVIDIA L40S"), ("gpu:1", "NVIDIA L40S")]
    assert [(entry.reason, entry.rows) for entry in run.quality.rejected] == [("damaged GPU name", 1)]


def test_a_log_of_another_form(tmp_path: Path) -> None:
    gpus = [row % 2 for row in range(200)]
    gpus[90] = 3
    lines = [
        f" 20260314 09:{row // 120:02d}:{row // 2 % 60:02d} {gpu:5d} 250 60 - 90 40 0 0" for row, gpu in enumerate(gpus)
    ]
    header = "#Date Time gpu pwr gtemp mtemp sm mem enc dec\n#YYYYMMDD HH:MM:SS Idx W C C % % % %\n"
    run = read_text(tmp_path, header + "\n".join([*lines, ""])).run
    assert [device.id for device in run.devices] == ["gpu:0", "gpu:1"]
    assert [(entry.reason, entry.rows) for entry in run.quality.rejected] == [("damaged GPU name", 1)]


def _ticks(ticks: Iterable[int], gpus: int, cells: Callable[[int], str] = str) -> list[str]:
    return [f"{stamp(tick + gpu / 500)}, {cells(gpu)}, 90 %" for tick in ticks for gpu in range(gpus)]


UUIDS = _CELLS["uuid"]
SELDOM = sorted([*((float(second), 0) for second in range(250)), *((60 * minute + 0.45, 1) for minute in range(1, 5))])
FEW_ROWS: dict[str, tuple[str, list[str], int]] = {
    "lost early": ("index", _ticks(range(3), 3) + _ticks(range(3, 200), 2), 3),
    "added late": ("index", _ticks(range(197), 2) + _ticks(range(197, 200), 3), 3),
    "once": ("index", _ticks(range(100), 2) + _ticks([100], 3) + _ticks(range(101, 200), 2), 3),
    "less often, by another process": ("index", [f"{stamp(second)}, {gpu}, 90 %" for second, gpu in SELDOM], 2),
    "a short log of many GPUs": ("index", _ticks(range(3), 8), 8),
    "a driver that names the GPU anew": (
        "uuid, name",
        _ticks(range(100), 1, lambda gpu: f"{UUIDS[gpu]}, GeForce RTX 3090")
        + _ticks(range(101, 104), 1, lambda gpu: f"{UUIDS[gpu]}, NVIDIA GeForce RTX 3090"),
        1,
    ),
    "indices that a reboot swapped": (
        "index, uuid",
        _ticks(range(100), 2, lambda gpu: f"{gpu}, {UUIDS[gpu]}")
        + _ticks(range(400, 403), 2, lambda gpu: f"{gpu}, {UUIDS[1 - gpu]}"),
        2,
    ),
    "rows of a GPU that is lost": (
        "index, uuid",
        [
            f"{stamp(70)}, 0, [GPU is lost], [GPU is lost]" if place == 70 else row
            for place, row in enumerate(_ticks(range(100), 1, lambda gpu: f"{gpu}, {UUIDS[gpu]}"))
        ],
        1,
    ),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_few_rows_of_a_gpu_are_kept(tmp_path: Path, name: str) -> None:
    columns, rows, gpus = FEW_ROWS[name]
    run = read_text(tmp_path, "\n".join([f"timestamp, {columns}, utilization.gpu [%]", *rows, ""])).run
    assert (run.quality.rejected, len(run.devices)) == ((), gpus)


@pytest.mark.parametrize("at", [2, *range(33, 40), 297])
@pytest.mark.parametrize("gpus", [1, 2])
def test_one_wrong_date_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, gpus: int) -> None:
    monkeypatch.setattr("gpureport.importers.source_text.PIECE_BYTES", 3000)
    rows = [row(second, gpu) for second in range(300) for gpu in range(gpus)]
    rows[at] = rows[at].replace("2026", "2036")
    quality = read_text(tmp_path, "\n".join([HEADER, *rows, ""])).run.quality
    assert quality.rejected == (Rejected(reason="stamp out of sequence", rows=1, first_line=at + 2),)
    assert quality.clock_steps == ()
    assert quality.gaps == ()
    assert quality.accounted


def test_pauses_of_days_are_no_damage(tmp_path: Path) -> None:
    for name, seconds in read_table(Path(__file__).with_name("pauses.tsv")):
        stamps = [datetime(2026, 3, 14, 9) + timedelta(seconds=int(second)) for second in seconds.split()]
        rows = [f"{stamp:%Y/%m/%d %H:%M:%S}.000, 0, 90 %" for stamp in stamps]
        quality = read_text(tmp_path, "\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""])).run.quality
        assert (quality.rejected, quality.rows_kept) == ((), len(stamps)), name

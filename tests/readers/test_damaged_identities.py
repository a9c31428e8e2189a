"""Rows whose identity one damaged cell made up."""

import random
from itertools import combinations
from pathlib import Path

import pytest

from gpureport.testing import Run, analyze
from tests.support.logs import read_text, stamp

_CELLS = {
    "index": ["0", "1", "2", "3"],
    "uuid": [f"GPU-8f2c4a1{gpu}-0b6d-4c1e-9a57-3d2e1f0a9b8{gpu}" for gpu in range(4)],
    "pci.bus_id": [f"00000000:{17 + 16 * gpu:02X}:00.0" for gpu in range(4)],
    "serial": [f"132212302741{gpu}" for gpu in range(4)],
    "name": ["NVIDIA L40S"] * 4,
}
_SERIES = "utilization.gpu [%], memory.used [MiB]"
_MUTATIONS = 6
"""Damaged cells tried for each choice of columns; a thousand were once."""


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
        for _ in range(_MUTATIONS // count):
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


def _kept(folder: Path, rows: list[str], columns: str = "index") -> Run:
    run = read_text(folder, "\n".join([f"timestamp, {columns}, utilization.gpu [%]", *rows, ""])).run
    assert run.quality.rejected == ()
    return run


@pytest.mark.parametrize("seen", [range(3), range(197, 200), range(100, 101)], ids=["lost early", "added late", "once"])
def test_a_gpu_of_a_few_rows_beside_the_others(tmp_path: Path, seen: range) -> None:
    rows = [
        f"{stamp(tick + gpu / 500)}, {gpu}, 90 %" for tick in range(200) for gpu in range(3) if gpu < 2 or tick in seen
    ]
    assert len(_kept(tmp_path, rows).devices) == 3


def test_a_gpu_logged_less_often_by_another_process(tmp_path: Path) -> None:
    rows = [(float(second), 0) for second in range(250)] + [(60 * minute + 0.45, 1) for minute in range(1, 5)]
    assert len(_kept(tmp_path, [f"{stamp(second)}, {gpu}, 90 %" for second, gpu in sorted(rows)]).devices) == 2


def test_a_short_log_of_many_gpus(tmp_path: Path) -> None:
    rows = [f"{stamp(tick + gpu / 500)}, {gpu}, 90 %" for tick in range(3) for gpu in range(8)]
    assert len(_kept(tmp_path, rows).devices) == 8


def test_a_driver_that_names_the_gpu_anew(tmp_path: Path) -> None:
    uuid = "GPU-8f2c4a10-0b6d-4c1e-9a57-3d2e1f0a9b80"
    rows = [f"{stamp(second)}, {uuid}, GeForce RTX 3090, 90 %" for second in range(100)]
    rows += [f"{stamp(second)}, {uuid}, NVIDIA GeForce RTX 3090, 90 %" for second in range(101, 104)]
    assert len(_kept(tmp_path, rows, "uuid, name").devices) == 1


def test_indices_that_a_reboot_swapped(tmp_path: Path) -> None:
    uuids = [f"GPU-8f2c4a1{gpu}-0b6d-4c1e-9a57-3d2e1f0a9b8{gpu}" for gpu in range(2)]
    rows = [f"{stamp(tick + gpu / 500)}, {gpu}, {uuids[gpu]}, 90 %" for tick in range(100) for gpu in range(2)]
    rows += [
        f"{stamp(tick + gpu / 500)}, {gpu}, {uuids[1 - gpu]}, 90 %" for tick in range(400, 403) for gpu in range(2)
    ]
    assert len(_kept(tmp_path, rows, "index, uuid").devices) == 2


def test_rows_of_a_gpu_that_is_lost(tmp_path: Path) -> None:
    uuid = "GPU-8f2c4a10-0b6d-4c1e-9a57-3d2e1f0a9b80"
    rows = [f"{stamp(second)}, 0, {uuid}, 90 %" for second in range(100)]
    rows[70] = f"{stamp(70)}, 0, [GPU is lost], [GPU is lost]"
    assert len(_kept(tmp_path, rows, "index, uuid").devices) == 1

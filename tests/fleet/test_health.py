"""Which GPU to pull, over all of its runs."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.cli.logs import SAMPLES
from tests.cli.program import Program
from tests.fleet.fleet_logs import MINUTE, Card, report, write_job

COOL = Card(spans=(("work", 3),), uuid="GPU-1", uncorrected=0)
HOT = Card(spans=(("work", 1), ("hot", 2)), uuid="GPU-1", uncorrected=0)


def assess(gpureport: Program, folder: Path, *cards: Card, node: str = "n1") -> Any:
    for place, card in enumerate(cards):
        write_job(folder / "jobs", f"r{place}", card, start=f"2026-10-0{place + 1}T12:00", node=node)
    return report(gpureport, str(folder / "jobs"), "--store", str(folder / "store"))["health"]


def test_a_card_is_watched_or_pulled(gpureport: Program, tmp_path: Path) -> None:
    table = [
        ([HOT, HOT, COOL], {"GPU-1": ("pull", ["heat_slowed"])}),
        ([HOT, COOL, COOL], {"GPU-1": ("watch", ["heat_slowed"])}),
        ([HOT, HOT, COOL, COOL, COOL], {"GPU-1": ("watch", ["heat_slowed"])}),
        ([Card(uuid="GPU-2", uncorrected=1)], {"GPU-2": ("pull", ["ecc_uncorrected"])}),
        ([Card(uuid="GPU-2", corrected=40)], {"GPU-2": ("watch", ["ecc_corrected"])}),
        # only a rise from run to run is a symptom
        ([Card(uuid="GPU-3", remapped=5, spans=(("work", n),)) for n in (3, 4)], {}),
        (
            [Card(uuid="GPU-3", remapped=n, spans=(("work", 3),)) for n in (0, 2)],
            {"GPU-3": ("watch", ["remapped_rows"])},
        ),
        ([COOL, COOL], {}),
    ]
    for place, (cards, expected) in enumerate(table):
        health = assess(gpureport, tmp_path / str(place), *cards)
        shown = {
            card["uuid"]: (card["verdict"], [each["symptom"] for each in card["symptoms"]]) for card in health["cards"]
        }
        assert shown == expected, (place, health)
        assert health["healthy"] == int(not expected)


def test_a_lost_gpu_and_a_slow_link(gpureport: Program, tmp_path: Path) -> None:
    text = gzip.decompress((SAMPLES / "faulty_hardware" / "nvidia-smi.csv.gz").read_bytes()).decode()
    header, *_ = text.splitlines()
    assert "uuid" not in header
    for day in (1, 2):
        folder = tmp_path / "jobs" / f"day{day}"
        folder.mkdir(parents=True)
        (folder / "gpu.csv").write_text(text.replace("2026/05/2", f"2026/0{day}/2"))
        (folder / "labels.json").write_text('{"tags": {"node": "n1"}}')
        health = report(gpureport, "jobs")["health"]
        found = {card["device"]: (card["verdict"], card["symptoms"][0]["symptom"]) for card in health["cards"]}
        again = "watch" if day == 1 else "pull"
        assert found == {
            "gpu:0": (again, "slow_link"),
            "gpu:1": ("pull", "ecc_uncorrected"),
            "gpu:2": (again, "gpu_lost"),
        }


def test_a_card_that_is_slow_again_is_pulled(gpureport: Program, tmp_path: Path) -> None:
    text = gzip.decompress((SAMPLES / "slow_gpu" / "nvidia-smi.csv.gz").read_bytes()).decode()
    for day, verdict in ((1, "watch"), (2, "pull")):
        folder = tmp_path / "jobs" / f"day{day}"
        folder.mkdir(parents=True)
        (folder / "gpu.csv").write_text(text.replace("2026/07/0", f"2026/0{day}/0"))
        (folder / "labels.json").write_text('{"tags": {"node": "n1"}}')
        health = report(gpureport, "jobs")["health"]
        (card,) = health["cards"]
        (symptom,) = card["symptoms"]
        assert (card["verdict"], symptom["symptom"], symptom["assessed"]) == (verdict, "slow_gpu", day)
        assert (len(symptom["runs"]), symptom["amount"]) == (day, None)


def test_a_card_is_known_by_its_uuid_wherever_it_sits(gpureport: Program, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    write_job(jobs, "late", Card(), HOT, start="2026-10-06T12:00", node="n2")
    write_job(jobs, "early", HOT, start="2026-10-05T12:00", node="n1")
    write_job(jobs, "other", Card(uuid="GPU-2", uncorrected=0), start="2026-10-04T12:00", node="n1")
    write_job(jobs, "nobody", Card(spans=HOT.spans), start="2026-10-03T12:00")
    health = report(gpureport, "jobs")["health"]
    (card,) = [each for each in health["cards"] if each["uuid"] == "GPU-1"]
    (heat,) = card["symptoms"]
    assert (card["node"], card["device"], card["runs"], card["max_temperature_celsius"]) == ("n2", "gpu:1", 2, 90.0)
    assert ([run["name"] for run in heat["runs"]], heat["assessed"]) == (["early", "late"], 2)
    assert heat["amount"] == pytest.approx(4 * MINUTE, rel=0.1)
    assert health["unidentified_gpu_seconds"] == 3 * MINUTE

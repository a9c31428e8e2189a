"""Several sources that are one run, in every order."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.cli.logs import row, stamp, table
from tests.cli.program import Program

HOST = "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in range(60))
TRAINING = "timestamp,loss\n" + "".join(f"{stamp(at).replace('/', '-')},{9 - at / 60}\n" for at in range(60))
COPIES = "#Date       Time        gpu rxpci txpci\n#YYYYMMDD   HH:MM:SS    Idx  MB/s  MB/s\n" + "".join(
    f" 20260314   09:00:{at:02}     0   {500 + at}    20\n" for at in range(60)
)


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    texts = {"host": HOST, "loss": TRAINING, "copies": COPIES}
    texts |= {name: table(*map(row, seconds)) for name, seconds in (("a", range(60)), ("b", range(100, 160)))}
    for name, text in texts.items():
        (tmp_path / f"{name}.log").write_text(text)


def runs(gpureport: Program, *words: str) -> list[tuple[str, str, list[str]]]:
    found = json.loads(gpureport("analyze", *words, "--format", "json").out)["runs"]
    return [
        (each["run"]["id"], each["run"]["name"], sorted(source["locator"] for source in each["run"]["sources"]))
        for each in found
    ]


def test_sources_of_one_job_are_one_run_in_any_order(gpureport: Program) -> None:
    everything = ("a.log", "copies.log", "host.log", "loss.log")
    found = {str(runs(gpureport, *order)) for order in list(permutations(everything))[::4]}
    options = ("--host", "host.log", "--training", "loss.log")
    found.add(str(runs(gpureport, "copies.log", "a.log", *options)))
    found.add(str(runs(gpureport, "a.log", "--host", "copies.log", *options)))
    assert len(found) == 1
    assert "'a', ['a.log', 'copies.log', 'host.log', 'loss.log']" in found.pop()


def test_companions_join_the_step_whose_time_they_share(gpureport: Program) -> None:
    outcome = gpureport("compare", "copies.log", "a.log", "b.log", "host.log", "--format", "json")
    assert [step["label"] for step in json.loads(outcome.out)["steps"]] == ["a", "b"]
    assert "a.log, copies.log" in outcome.err
    alone = gpureport("compare", "a.log", "copies.log", "--format", "json")
    assert len(json.loads(alone.out)["steps"]) == 2

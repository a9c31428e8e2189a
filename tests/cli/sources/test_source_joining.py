"""Several sources that are one run, in every order."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.reading.test_run_sources import dmon, query
from tests.support.logs import stamp, write

HOST = "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in range(60))
TRAINING = "timestamp,loss\n" + "".join(f"{stamp(at).replace('/', '-')},{9 - at / 60}\n" for at in range(60))


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    """Four logs of a job, and one of the job after it."""
    others = {"host": HOST, "loss": TRAINING, "b": query(range(100, 160))}
    write(tmp_path, ".log", a=query(range(60)), copies=dmon(range(60)), **others)


def runs(gpureport: Program, *words: str) -> list[tuple[str, str, list[str]]]:
    """Return id, name and files of each run."""
    found = json.loads(gpureport("analyze", *words, "--format", "json").out)["runs"]
    return [
        (each["run"]["id"], each["run"]["name"], sorted(source["locator"] for source in each["run"]["sources"]))
        for each in found
    ]


def test_sources_of_one_job_are_one_run_in_any_order(gpureport: Program) -> None:
    """GPU, copies, host and training logs make one run, named in any order, or with options."""
    everything = ("a.log", "copies.log", "host.log", "loss.log")
    found = {str(runs(gpureport, *order)) for order in list(permutations(everything))[::4]}
    options = ("--host", "host.log", "--training", "loss.log")
    found.add(str(runs(gpureport, "copies.log", "a.log", *options)))
    found.add(str(runs(gpureport, "a.log", "--host", "copies.log", *options)))
    assert len(found) == 1
    assert "'a', ['a.log', 'copies.log', 'host.log', 'loss.log']" in found.pop()


def test_companions_join_the_step_whose_time_they_share(gpureport: Program) -> None:
    """A comparison keeps its steps; logs beside them join one each."""
    outcome = gpureport("compare", "copies.log", "a.log", "b.log", "host.log", "--format", "json")
    assert [step["label"] for step in json.loads(outcome.out)["steps"]] == ["a", "b"]
    assert "gpureport: read as one run: a.log, copies.log" in outcome.err
    alone = gpureport("compare", "a.log", "copies.log", "--format", "json")
    assert len(json.loads(alone.out)["steps"]) == 2

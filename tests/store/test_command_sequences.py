"""Any sequence of commands leaves a store that holds what a model of it says."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyarrow import parquet

from tests.store.runs import SCALE, noisy, read_store
from tests.support.program import run_program

LOGS = ("a.csv", "b.csv", "c.csv")
NAMES = st.sampled_from(("base", "next run", "é→", "a.csv"))
STEPS = st.sampled_from(("1", "2-larger"))
DATES = st.sampled_from(("2026-03-14", "2026-03-15"))
EPOCH = datetime(1970, 1, 1)
_NO_SUCH_RUN, _NO_DATA = 3, 4
"""Exit codes of commands; a night without data is recorded as one."""


class Labels(NamedTuple):
    name: str
    step: str | None
    tags: dict[str, str]


@dataclass(slots=True)
class Model:
    runs: dict[str, Labels] = field(default_factory=dict)
    baselines: dict[str, dict[str, Labels]] = field(default_factory=dict)
    nights: dict[str, tuple[str, str, str]] = field(default_factory=dict)


class StoreCommands(RuleBasedStateMachine):
    """Commands in any order, on runs that are there or were removed."""

    stored: Bundle[str] = Bundle("stored")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._place = Path(self._folder.name)
        self._store = self._place / "store"
        self._model = Model()

    def teardown(self) -> None:
        self._folder.cleanup()

    def _run(self, *arguments: str) -> tuple[int, str]:
        done = run_program(self._place, *arguments, "--store", str(self._store))
        return done.code, done.out

    def _change(self, *arguments: str, of: Sequence[str]) -> bool:
        """Run a command on runs; return whether it had an effect, as it must exactly where all of them are there."""
        known = all(run in self._model.runs for run in of)
        assert self._run(*arguments)[0] == (0 if known else _NO_SUCH_RUN)
        return known

    @initialize()
    def write_logs(self) -> None:
        for seed, name in enumerate(LOGS):
            (self._place / name).write_text(noisy(seed, rows=40, gpus=1))

    @rule(
        target=stored, log=st.sampled_from(LOGS), name=NAMES | st.none(), step=STEPS | st.none(), tagged=st.booleans()
    )
    def ingest(self, log: str, name: str | None, step: str | None, *, tagged: bool) -> str:
        """A new run gets the labels that are given, one that is stored keeps its own besides."""
        given = {"--name": name, "--step": step, "--tag": "by=hand" if tagged else None}
        options = [word for option, value in given.items() if value for word in (option, value)]
        assert self._run("ingest", log, *options)[0] == 0
        (run,) = (key for key, one in read_store(self._store).items() if one.run["sources"][0]["locator"] == log)
        known = self._model.runs.get(run, Labels(Path(log).stem, None, {}))
        tags = {"by": "hand"} if tagged else known.tags
        self._model.runs[run] = Labels(name or known.name, step or known.step, tags)
        return run

    @rule(run=stored, name=NAMES)
    def rename(self, run: str, name: str) -> None:
        if self._change("runs", "rename", run, name, of=[run]):
            self._model.runs[run] = self._model.runs[run]._replace(name=name)

    @rule(run=stored, step=STEPS)
    def label(self, run: str, step: str) -> None:
        if self._change("runs", "step", run, step, of=[run]):
            self._model.runs[run] = self._model.runs[run]._replace(step=step)

    @rule(run=stored)
    def remove(self, run: str) -> None:
        if self._change("runs", "rm", run, of=[run]):
            del self._model.runs[run]

    @rule(run=stored)
    def analyze(self, run: str) -> None:
        code, out = self._run("analyze", run, "--format", "json")
        assert code == (0 if run in self._model.runs else _NO_SUCH_RUN)
        if run in self._model.runs:
            (found,) = json.loads(out)["runs"]
            known = self._model.runs[run]
            assert (found["run"]["name"], found["run"]["step"]) == (known.name, known.step)

    @rule(name=st.sampled_from(("main", "release-1")), runs=st.lists(stored, min_size=1, max_size=2))
    def set_baseline(self, name: str, runs: Sequence[str]) -> None:
        """A baseline is what its runs were when it was set, and replaces the one before."""
        # not `unique`, which older versions of hypothesis cannot ask of runs that a rule made
        each = tuple(dict.fromkeys(runs))
        if self._change("baseline", "set", name, *each, of=each):
            self._model.baselines[name] = {run: self._model.runs[run] for run in each}

    @precondition(lambda self: self._model.baselines)
    @rule()
    def remove_baseline(self) -> None:
        name = min(self._model.baselines)
        assert self._run("baseline", "rm", name)[0] == 0
        del self._model.baselines[name]

    @rule(run=stored, date=DATES)
    def nightly(self, run: str, date: str) -> None:
        """A run is measured in one night; when it is given again in that night, its labels are those of now."""
        known = self._model.runs.get(run)
        is_new = known is not None and self._model.nights.get(run, (date,))[0] == date
        assert self._run("nightly", run, "--date", date, "--site", "site")[0] == (0 if is_new else _NO_DATA)
        if known is not None and is_new:
            self._model.nights[run] = date, known.name, known.step or ""

    @invariant()
    def holds_the_runs(self) -> None:
        found = read_store(self._store)
        assert {run: stored.labels for run, stored in found.items()} == self._model.runs
        assert all(len(stored.rows) == 40 for stored in found.values())
        if not self._store.exists():
            return
        done = run_program(self._place, "runs", "list", "--format", "json", "--store", str(self._store))
        assert (done.code, done.err) == (0, "")
        assert {run["id"]: run["name"] for run in json.loads(done.out)["runs"]} == {
            run: labels.name for run, labels in self._model.runs.items()
        }

    @invariant()
    def holds_the_baselines(self) -> None:
        folders = (path.parent for path in self._store.glob("baselines/[!.]*/store.json"))
        found = {each.name: {run: own.labels for run, own in read_store(each).items()} for each in folders}
        assert found == self._model.baselines

    @invariant()
    def holds_the_nights(self) -> None:
        measured: dict[str, tuple[Any, tuple[str, str, str]]] = {}
        for path in self._store.glob("history/*.parquet"):
            for row in parquet.read_table(path).to_pylist():
                said = (str(row["night"]), row["run_name"], row["step"] or "")
                if row["status"] == "measured" and row["recorded"] > measured.get(row["run_id"], (EPOCH, ()))[0]:
                    measured[row["run_id"]] = row["recorded"], said
        assert {run: said for run, (_, said) in measured.items()} == self._model.nights


@pytest.mark.parametrize(
    ("examples", "steps"), [(3, 8), pytest.param(40 * SCALE, 25, marks=pytest.mark.stress)], ids=["short", "long"]
)
def test_the_store_is_as_the_model(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(StoreCommands, settings=chosen)

"""Commands that are tried with faults, and the trials."""

import gzip
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import gcd
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.faults.fault import CHANGES, Call, Fault, State, age_leftovers, list_faults, read_log, read_state
from tests.importers.trackers.mlflow.stores import database, folder, run_id
from tests.publishing.conftest import RUNS
from tests.store.forking import Forks, Order
from tests.store.runs import noisy
from tests.support.logs import stamp
from tests.support.program import Outcome
from tests.support.tables import read_table, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command that is tried."""

    name: str
    arguments: Sequence[str]
    prepare: Sequence[Sequence[str]]  # commands that make what it begins with
    clears: Sequence[str] | None  # what clears away what was left half done; None where its next run does
    points: int  # how many faults are tried


def write_logs(place: Path) -> None:
    """Write the logs that the commands read, short ones, and a folder of MLflow with two runs."""
    (place / "tmp").mkdir(parents=True)
    for seed, name in enumerate(("old", "new", "third")):
        (place / f"{name}.csv").write_text(noisy(seed, rows=200).replace("2026/03/14", f"2026/03/{14 + seed}"))
    folder(place / "mlruns", RUNS[:2])
    database(place / "mlflow.db", RUNS[:2])
    text = noisy(3, rows=2000).encode()
    (place / "packed.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    (place / "packed.csv.zst").write_bytes(pa.compress(text, "zstd", asbytes=True))
    (place / "recorded").mkdir()
    (place / "recorded" / "gpu.csv").write_text(noisy(4, rows=2000, gpus=1))
    host = [f"{stamp(second)},{second % 100}.0,8" for second in range(2000)]
    (place / "recorded" / "host.csv").write_text("\n".join(["timestamp,cpu_percent,cpu_count", *host, ""]))


COMPARE = ("compare", f"mlflow:mlruns#{run_id(1)}", f"mlflow:mlruns#{run_id(2)}", "--format", "json")
"""Its output is `comparison.json`."""


def _read_scenarios(kind: str) -> list[Scenario]:
    scenarios, known = [], dict[str, Sequence[str]]()
    for what, name, command, *more in read_table(Path(__file__).with_name("scenarios.tsv")):
        words = words_of(command, first=run_id(1))
        if what == "command":
            known[name] = words
        if what == kind:
            points, before, after = more
            prepare = [known[each] for each in before.split(", ") if each != "-"]
            clears = None if after == "-" else known[after]
            scenarios.append(Scenario(name=name, arguments=words, points=int(points), prepare=prepare, clears=clears))
    return scenarios


SCENARIOS, READERS = _read_scenarios("writes"), _read_scenarios("reads")
"""Commands that write, and commands that read what may not be read whole."""


def reset(place: Path, template: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place, symlinks=True)


_CLOCK = 1_773_500_000
"""When every command runs, so that two runs of it write the same bytes."""
_KILLED = -9
_NOT_ASSESSED = 4
_REFERENCE = re.compile(r'(?:href|src)="(?!#|[a-z]+:)([^"#]+)')


@dataclass(slots=True)
class Stage:
    """A scenario in a folder: what it begins with, and what its command makes where nothing goes wrong."""

    scenario: Scenario
    forks: Forks
    folder: Path
    counted: Sequence[str] = CHANGES  # names of the calls at which something goes wrong
    calls: list[Call] = field(init=False)
    old: State = field(init=False)
    new: State = field(init=False)
    done: Outcome = field(init=False)
    _seen: set[object] = field(default_factory=set)

    def __post_init__(self) -> None:
        write_logs(self.folder)
        if "comparison.json" in self.scenario.arguments:
            (self.folder / "comparison.json").write_text(self.run(COMPARE).out)
        for command in self.scenario.prepare:
            ended = self.run(command)
            assert ended.code == 0, ended
        # worker processes leave sockets there
        shutil.copytree(self.folder, self._template, ignore=shutil.ignore_patterns("pymp-*"))
        self.old = read_state(self.folder)
        self.done = self.run(self.scenario.arguments, Fault(kind="none", calls=self.counted))
        assert "gpureport: " not in self.done.err, self.done
        self.calls, self.new = read_log(self._log), read_state(self.folder)
        assert self.new.leftovers == self.old.leftovers == ()

    @property
    def _template(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-template")

    @property
    def _log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-calls")

    def run(self, arguments: Sequence[str], fault: Fault | None = None, **more: Any) -> Outcome:
        folder, log = str(self.folder), str(self._log)
        return self.forks.run(Order(arguments=arguments, folder=folder, fault=fault, log=log, clock=_CLOCK, **more))

    def faults(self) -> Iterator[tuple[Call, Fault]]:
        for at, call in enumerate(self.calls):
            for fault in list_faults(call.name, at):
                yield call, fault

    def try_fault(self, fault: Fault) -> bool:
        """Run the command with a fault, and check what must hold; return whether the fault was met."""
        reset(self.folder, self._template)
        ended = self.run(self.scenario.arguments, fault)
        met = any(call.is_faulty for call in read_log(self._log))
        if self._records_gap(ended):
            self._check_pages()
            return met
        state = read_state(self.folder)
        self._check_state(state)
        if fault.action.startswith("kill") and met:
            assert ended.code == _KILLED, ended
        else:
            self._check_ending(ended, state, met=met)
        if fault.error == "ENOSPC":
            assert state.leftovers == (), "a full disk keeps what was half written"
        key = (tuple(sorted(state.units.items())), state.leftovers)
        if key not in self._seen:
            self._seen.add(key)
            self._check_later_commands(keeps_temporary=fault.lasts or fault.action.startswith("kill"))
        return met

    def try_clock(self, after: int) -> int:
        """Run the command with a clock that is set back after a number of readings; return how many there were."""
        reset(self.folder, self._template)
        ended = self.run(self.scenario.arguments, clock_back=(3600.0, after), readings=str(self._log))
        readings = int(self._log.read_text())
        assert (ended.code, ended.out, ended.err) == (self.done.code, self.done.out, self.done.err), ended
        state = read_state(self.folder)
        assert (state.units.keys(), state.leftovers) == (self.new.units.keys(), ())
        # the history says when a night was recorded
        changed = [name for name, unit in state.units.items() if unit != self.new.units[name]]
        assert all(name.startswith(".gpureport/history/") for name in changed), changed
        again = self.run(self.scenario.arguments)
        assert (again.code, "gpureport: " in again.err) == (self.done.code, False), again
        return readings

    def _records_gap(self, ended: Outcome) -> bool:
        """Return whether a night was recorded as one without data, since its log cannot be read."""
        words = self.scenario.arguments
        return (words[0], ended.code) == ("nightly", _NOT_ASSESSED) and f"gpureport: {words[1]}: " in ended.err

    def _check_pages(self) -> None:
        """Check that the pages of a site are those that its history makes."""
        pages = {name: unit for name, unit in read_state(self.folder).units.items() if name.startswith("site/")}
        assert self.run(("nightly", "--site", "site")).code == 0
        again = {name: unit for name, unit in read_state(self.folder).units.items() if name.startswith("site/")}
        assert pages == again

    def _check_state(self, state: State) -> None:
        """Check that every run, baseline and file is as it was, or as it is to be."""
        for name in self.old.units.keys() | self.new.units.keys() | state.units.keys():
            known = (self.old.units.get(name), self.new.units.get(name))
            assert state.units.get(name) in known, f"{name} is neither old nor new"
        # the first page leads to all others
        site = self.folder / "site"
        for page in site.rglob("[!.]*.html") if (site / "index.html").exists() else ():
            for target in _REFERENCE.findall(page.read_text()):
                assert (page.parent / target).exists(), f"{page.name} leads to {target}, which is not there"

    def _check_ending(self, ended: Outcome, state: State, *, met: bool) -> None:
        """Check the last words of a command that was not killed: done, or one line that says what went wrong."""
        if ended.code == self.done.code and "gpureport: " not in ended.err:
            assert state.units == self.new.units, ("it says that all is done", ended)
            if state.units == self.old.units:
                assert ended.out == self.done.out, ("it prints something else", self.done, ended)
            return
        assert met, ended
        if ended.code == _NOT_ASSESSED:
            assert ended.out.startswith("NOT ASSESSED: "), ended
            return
        # what lists runs leaves out what it cannot read, and says so
        assert ended.code in ({0, 2, 3} if self.scenario.name in {"runs list", "fleet"} else {2, 3}), ended
        assert ": damaged; ingest" not in ended.err or self.scenario.name == "fleet", ended
        errors = [line for line in ended.err.splitlines() if line.startswith("gpureport: ")]
        assert len(errors) == 1, ended
        assert re.fullmatch(r"gpureport: .+; .+", errors[0]), ended
        assert "Traceback" not in ended.err
        assert "standard output" not in ended.err, ended

    def _check_later_commands(self, *, keeps_temporary: bool) -> None:
        """Check that what is there can be read, and that the same command then ends as it should."""
        if (self.folder / ".gpureport").is_dir():
            listed = self.run(("runs", "list"))
            assert (listed.code, listed.err) == (0, ""), listed
        age_leftovers(self.folder)
        again = self.run(self.scenario.arguments)
        state = read_state(self.folder)
        self._check_again(again, state, keeps_temporary=keeps_temporary)

    def _check_again(self, again: Outcome, state: State, *, keeps_temporary: bool) -> None:
        removes = "rm" in self.scenario.arguments
        if removes and again.code != self.done.code:
            assert again.code in {2, 3}, again
        else:
            assert (again.code, "gpureport: " in again.err) == (self.done.code, False), again
        assert state.units == self.new.units, ("after another try", again)
        left = state.leftovers
        if self.scenario.clears is not None and left:
            assert self.run(self.scenario.clears).code == 0
            left = read_state(self.folder).leftovers
        assert [name for name in left if not (keeps_temporary and name.startswith("tmp/"))] == []


def run_trials(stage: Stage, number: int) -> Counter[tuple[str, str]]:
    """Try so many faults, spread over all calls; return how many were tried by call and kind."""
    tried: Counter[tuple[str, str]] = Counter()
    faults = list(stage.faults())
    assert len(faults) >= number, f"{stage.scenario.name}: {len(faults)} faults are all that can go wrong"
    # a step that has no factor in common with their count meets each once, and all kinds of faults at a call
    step = next(step for step in count(max(len(faults) // number, 1)) if gcd(step, len(faults)) == 1)
    for place in sorted(step * turn % len(faults) for turn in range(number)):
        call, fault = faults[place]
        try:
            met = stage.try_fault(fault)
        except AssertionError as error:
            error.add_note(f"{stage.scenario.name}: {fault.kind} at call {fault.at}, {call.name} {call.path}")
            raise
        tried[call.name, fault.kind if met else "not met"] += 1
    return tried

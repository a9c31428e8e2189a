"""The analysis of a run, as every command that judges makes it, here or in a second process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpureport.analysis import analyze
from gpureport.analysis.base import Analysis, Rule
from gpureport.analysis.cost import cost
from gpureport.analysis.prices import Prices
from gpureport.analysis.selection import narrowed
from gpureport.cli.faults import EXPECTED, Fault, fault
from gpureport.errors import StoreError
from gpureport.recording import Recording, Run
from gpureport.store import Store
from gpureport.store.store import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What runs are judged by: rules, the kinds asked for, and prices."""

    rules: tuple[Rule, ...]
    kinds: frozenset[str]
    prices: Prices

    def analysis(self, recording: Recording) -> Analysis:
        """Return the analysis of a run."""
        analysis = narrowed(analyze(recording, self.rules), set(self.kinds))
        return replace(analysis, cost=cost(analysis, self.prices))

    def attempt(self, recording: Recording) -> Analysis | Fault:
        """Return the analysis of a run, or what gpureport failed on, so that other runs are judged all the same."""
        try:
            return self.analysis(recording)
        except EXPECTED:
            raise
        except Exception as error:  # noqa: BLE001 - nobody expected it
            return fault(_named(recording.run), error)


def stored(judge: Judge, runs: Sequence[tuple[Entry, Run]]) -> tuple[Analysis | Fault, ...]:
    """Return the analyses of stored runs, or faults, each under what is said of it on the command line.

    Raises:
        StoreError: when a run was replaced since it was looked up.
    """
    return tuple(judge.attempt(_read(entry, run)) for entry, run in runs)


def _named(run: Run) -> str:
    """Return what a person knows a run by: its log, else its name."""
    return run.sources[0].locator if len(run.sources) == 1 else run.name


def _read(entry: Entry, run: Run) -> Recording:
    recording = Store(entry.folder.parent.parent).read(entry)
    if recording.run is not entry.run:
        raise StoreError(run.id, "replaced meanwhile", "try again")
    return replace(recording, run=run)

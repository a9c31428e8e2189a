"""The analysis of a run, as every command that judges makes it."""

from dataclasses import dataclass, replace

from gpureport.analysis import analyze
from gpureport.analysis.base import Analysis, Rule
from gpureport.analysis.cost import cost
from gpureport.analysis.prices import Prices
from gpureport.analysis.selection import narrowed
from gpureport.cli.faults import EXPECTED, Fault, as_fault
from gpureport.recording import Recording, Run


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

    def try_analysis(self, recording: Recording) -> Analysis | Fault:
        """Return the analysis of a run, or what gpureport failed on, so that other runs are judged all the same."""
        try:
            return self.analysis(recording)
        except EXPECTED:
            raise
        except Exception as error:  # noqa: BLE001 - nobody expected it
            return as_fault(_named(recording.run), error)


def _named(run: Run) -> str:
    """Return what a person knows a run by: its log, else its name."""
    return run.sources[0].locator if len(run.sources) == 1 else run.name

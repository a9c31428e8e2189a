"""The analysis of a run, as every command that judges makes it."""

from dataclasses import dataclass, replace

from gpureport.analysis import analyze
from gpureport.analysis.account.cost import Prices, calculate_cost
from gpureport.analysis.account.selection import keep_kinds
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.cli.messages.internal_errors import InternalError, internal_errors
from gpureport.recording import Recording, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnalyzer:
    """Analyses runs by rules, the selected kinds, and prices."""

    rules: tuple[Rule, ...]
    kinds: frozenset[str]
    prices: Prices

    def analysis(self, recording: Recording) -> Analysis:
        """Return the analysis of a run."""
        analysis = keep_kinds(analyze(recording, self.rules), set(self.kinds))
        return replace(analysis, cost=calculate_cost(analysis, self.prices))

    def try_analysis(self, recording: Recording) -> Analysis | InternalError:
        """Return the analysis of a run, or what gpureport failed on."""
        try:
            with internal_errors(describe_run(recording.run)):
                return self.analysis(recording)
        except InternalError as error:
            return error


def describe_run(run: Run) -> str:
    """Return what a person knows a run by: its log, else its name."""
    return run.sources[0].locator if len(run.sources) == 1 else run.name

"""The analysis of a run, as every command that judges makes it."""

from dataclasses import dataclass, replace

from gpureport.analysis import analyze
from gpureport.analysis.base import Analysis, Rule
from gpureport.analysis.cost import cost
from gpureport.analysis.prices import Prices
from gpureport.analysis.selection import narrowed
from gpureport.recording import Recording


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

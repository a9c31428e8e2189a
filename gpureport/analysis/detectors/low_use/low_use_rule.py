"""What the two kinds of low use share: their thresholds, and which GPUs have episodes."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.signals import low_use, low_use_figures
from gpureport.analysis.signals.low_use import LowUse
from gpureport.analysis.signals.low_use_figures import LowUseFigures
from gpureport.analysis.thresholds import read_limits
from gpureport.findings import Finding, NotJudged, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUseRule(ClassRule):
    """Findings over the GPUs that work only part of the time and whose cause the check may name."""

    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = low_use.EXPLAINING_KINDS

    enter: Threshold = low_use.ENTER
    leave: Threshold = low_use.LEAVE
    gpu: Threshold = low_use.BELOW
    idle: Threshold = low_use.IDLE
    over: ClassVar[Threshold] = low_use.OVER
    shortest: Threshold = low_use.SHORTEST

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for each group of GPUs that the kind covers."""
        limits = read_limits(self, low_use.Limits)
        if (short := low_use.explain_too_short(self.name, context, limits)) is not None:
            yield short
            return
        low = low_use.find_low_use(context, limits)
        for devices in self.group_gpus(context, low):
            if devices:
                yield self.build_finding(context, low, low_use_figures.summarise_low_use(context, low, devices))

    @abstractmethod
    def group_gpus(self, context: Context, low: LowUse) -> Sequence[Sequence[str]]:
        """Return which of the GPUs with episodes the kind covers, those that get one finding together."""

    @abstractmethod
    def build_finding(self, context: Context, low: LowUse, figures: LowUseFigures) -> Finding:
        """Return the finding over these GPUs."""

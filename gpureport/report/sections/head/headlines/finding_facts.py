"""What a headline takes from the findings of one kind: who, how long, and the figures of the evidence."""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.results import GpuTime
from gpureport.comparison.gains import known_loss
from gpureport.findings import Finding
from gpureport.report.runs import gpu_time
from gpureport.report.sections.findings.finding_groups import Group
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_range

MINUTES = 600.0
"""Length in seconds from which a headline leaves out the seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFacts:
    """The findings of one kind and cause in one run, as a headline needs them.

    Attributes:
        group: the findings.
        followers: groups that follow from them.
    """

    group: Group
    followers: tuple[Group, ...] = ()

    @property
    def finding(self) -> Finding:
        """The finding that lost most."""
        return self.group.worst

    @property
    def cause(self) -> str:
        """What lies behind it, in a word; empty where it is not known."""
        return self.finding.cause or ""

    @property
    def gpus(self) -> str:
        """The GPUs concerned: `GPU 2`, `GPUs 0 and 1`, `all 4 GPUs`."""
        return name_gpus(self.group)

    @property
    def is_plural(self) -> bool:
        """Whether several GPUs are concerned."""
        return len(self.group.devices or self.group.run.run.gpus) > 1

    @property
    def seconds(self) -> float:
        """How long it lasted while jobs held GPUs, stretches that GPUs share counted once."""
        held = (span for found in self.group.findings for span in self.group.run.held_stretches(found))
        spans = sorted({(span.start, span.end) for span in held})
        total, end = 0, 0
        for start, stop in spans:
            total += max(stop - max(start, end), 0)
            end = max(end, stop)
        return total / 1e6

    @property
    def share(self) -> float | None:
        """Its part of the GPU time of the run, of what was observed where that is less than half; None if not known."""
        analyses = [self.group.run.analysis]
        held, unseen = gpu_time.job_gpu_seconds(analyses), gpu_time.unobserved_ratio(analyses)
        held *= 1 - unseen if unseen > known_loss.MOST_UNSEEN_RATIO else 1
        return self.group.lost / held if self.group.lost and held else None

    @property
    def gap_shares(self) -> tuple[list[float], str] | None:
        """The part of its time that each GPU concerned spent in idle gaps, and of what; None where not known.

        It is that of its bar; of the job, without what comes before the first work and after the last, where no GPU
        time is known.
        """
        times = [time for time in self.group.run.analysis.gpu_time if time.device in self.group.devices]
        shares = [_measure_idle_share(time) for time in times]
        if shares and all(shares):
            return shares, f"of {self.verb('its', 'their')} time"
        shares = self.list_observed("idle time of this GPU in gaps")
        return (shares, "of the job") if shares else None

    def list_observed(self, metric: str, statistic: str = "") -> list[float]:
        """Return what `observed` does, once for each GPU or GPUs of a finding: by the one of theirs that lost most."""
        worst: dict[tuple[str, ...], Finding] = {}
        for found in sorted(self.group.findings, key=lambda each: each.lost_gpu_seconds or 0.0, reverse=True):
            worst.setdefault(found.devices, found)
        values = (_find_observed(found, metric, statistic) for found in worst.values())
        return [value for value in values if value is not None]

    def format_observed(self, metric: str, show: Callable[[float], str], statistic: str = "") -> str:
        """Return what was observed, of GPUs that differ the least and the most: `88 to 92 °C`; empty without any."""
        values = self.list_observed(metric, statistic)
        return format_range(values, show) if values else ""

    def observed(self, metric: str, statistic: str = "") -> float | None:
        """Return the value of the first piece of evidence on a metric whose statistic begins so; None without any."""
        return _find_observed(self.finding, metric, statistic)

    def verb(self, one: str, several: str) -> str:
        """Return the form of a verb that fits the GPUs concerned."""
        return several if self.is_plural else one


def _find_observed(finding: Finding, metric: str, statistic: str) -> float | None:
    found = [each for each in finding.evidence if each.metric == metric and each.statistic.startswith(statistic)]
    exact = [each for each in found if each.statistic == statistic]
    return next((each.observed for each in exact or found), None)


def _measure_idle_share(time: GpuTime) -> float:
    gaps = fsum(part.seconds for part in time.parts if part.name == "idle" and part.cause != OUTSIDE)
    return gaps / gpu_time.measure_own_seconds(time) if time.job_seconds else 0.0


def name_gpus(group: Group) -> str:
    """Return the GPUs of a group as the subject of a sentence, which may begin with it."""
    if not group.devices:
        count = len(group.run.run.gpus)
        return "the GPU" if count == 1 else group.run.devices(())
    return group.run.devices(group.devices)


def format_length(seconds: float) -> str:
    """Return a length of time as a headline gives it: without seconds from ten minutes on."""
    return display.duration(60 * round(seconds / 60) if seconds >= MINUTES else seconds)

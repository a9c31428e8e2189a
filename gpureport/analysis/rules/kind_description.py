"""What a rule says of each kind of finding it makes: its names, its advice, and what it may follow from."""

from dataclasses import dataclass
from enum import Enum


class When(Enum):
    """How the time of a finding must lie to that of its root."""

    DURING = "during the root, for at least 90% of its time"
    SINCE = "after the beginning of the root, for at least 90% of its time"
    EVER = "at any time"


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """A kind of finding that explains another one.

    Attributes:
        kind: the kind that explains.
        causes: causes the explaining finding must have; any when empty.
        explains: causes of the explained finding that it accounts for; any when empty.
        on_any_device: whether it explains findings on other devices as well.
        needs_place: whether it must name its devices and its time; else it may stand for all of both.
        when: how their times must lie.
    """

    kind: str
    causes: tuple[str, ...] = ()
    explains: tuple[str | None, ...] = ()
    on_any_device: bool = False
    needs_place: bool = False
    when: When = When.DURING


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePath:
    """Steps of the advice catalogue for some causes of a kind, or for any where none is named.

    Attributes:
        steps: names of steps in `analysis/advice`, the most promising first.
        causes: the causes they are for.
    """

    steps: tuple[str, ...]
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """One kind of finding.

    Attributes:
        name: the kind, as it stands in JSON and on the command line.
        title: its title in reports.
        meaning: what it is, in one plain sentence.
        recommendations: every recommendation that a finding of it may give.
        advice_paths: steps to take; the first path that fits the cause of a finding is its own.
        follows_from: kinds that may be its root, the preferred one first.
        gpu_time_class: class of GPU time that its time counts to; empty where it claims none.
        gpu_time_part: what its part of that class is called, as in "waiting for input, *for storage*".
        cause_titles: titles of the causes that say more than that of the kind.
        stretch: noun for one stretch of time of a finding, where several are counted.
        always_loses_time: whether a finding without a figure of lost time lost an unknown amount, rather than none.
        needs_gpus: whether it says something of GPUs, so that a run without any cannot be judged.
        judges_few_samples: whether a handful of samples is enough, or the rule itself says that it is not.
    """

    name: str
    title: str
    meaning: str
    recommendations: tuple[str, ...]
    advice_paths: tuple[AdvicePath, ...]
    follows_from: tuple[RootCause, ...] = ()
    gpu_time_class: str = ""
    gpu_time_part: str = ""
    cause_titles: tuple[tuple[str, str], ...] = ()
    stretch: str = ""
    always_loses_time: bool = False
    needs_gpus: bool = True
    judges_few_samples: bool = False

"""What a step of the catalogue is, and on what it depends."""

from collections.abc import Callable
from dataclasses import dataclass

from gpureport.analysis.advice.applied_checks import AppliedCheck
from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.advice.setting_changes import SettingChange
from gpureport.analysis.job.framework import Framework


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that must hold for a step to help, as far as a recording can tell.

    Attributes:
        words: the condition in words.
        holds: whether it does; None where the recording does not tell.
    """

    words: str
    holds: Callable[[RunFacts], bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do about lost GPU time.

    Attributes:
        name: name in lower case, by which tables point to it.
        title: what it is called.
        do: what to do, in concrete words.
        when: when it helps.
        risk: what it costs or can break.
        check: how to see that it worked.
        source: where the advice comes from.
        conditions: what is looked up in the recording before it is given; all must hold.
        frameworks: frameworks it is for, None for a run that names no framework; empty where it is for all.
        applied_check: how the run tells whether it was applied already; None where it cannot.
        applied_by: changes between two runs, each of which shows that it was applied in the later one.
    """

    name: str
    title: str
    do: str
    when: str
    risk: str
    check: str
    source: str
    conditions: tuple[Condition, ...] = ()
    frameworks: tuple[Framework | None, ...] = ()
    applied_check: AppliedCheck | None = None
    applied_by: tuple[SettingChange, ...] = ()

"""Which settings differ between the runs of a study, and which of them can have an effect of their own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.comparison.study.factors import Factor
from gpureport.recording import Run
from gpureport.redaction import HIDDEN

_REPETITION = re.compile(r"(?:^|[^a-z])(?:random_?seed|seed|random_?state|repetition|repeat|replicate|rep|trial)$")
"""Names of params that tell repetitions apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedParams:
    """Settings that differ between runs.

    Attributes:
        factors: those that may have an effect, the settings that make the groups first.
        repetitions: params that only tell repetitions apart, such as a seed.
        names: params with another value in every run, such as a folder: nothing can be said of their effect.
    """

    factors: tuple[Factor, ...]
    repetitions: tuple[Factor, ...]
    names: tuple[Factor, ...]


def find_varied_params(runs: Sequence[Run], by: Sequence[Factor]) -> VariedParams:
    """Return what differs between runs, besides the settings that make the groups.

    Args:
        runs: all of a study.
        by: the settings that make the groups.
    """
    keys = sorted(
        {key for run in runs for key, value in run.params if HIDDEN not in value}
        - {each.key for each in by if each.kind == "param"}
    )
    differing = [Factor(kind="param", key=key) for key in keys]
    if all(factor.kind != "gpu" for factor in by):
        differing.append(Factor(kind="gpu"))
    differing = [factor for factor in differing if len({factor.value(run) for run in runs}) > 1]
    repetitions = [factor for factor in differing if tells_repetitions_apart(factor.key)]
    names = [factor for factor in differing if factor not in repetitions and _is_name(factor, runs, by)]
    used = [factor for factor in differing if factor not in repetitions and factor not in names]
    return VariedParams(
        factors=(*by, *used),
        repetitions=tuple(repetitions),
        names=tuple(names),
    )


def tells_repetitions_apart(name: str) -> bool:
    """Return whether a param, by its name, only tells repetitions apart, such as a seed."""
    return _REPETITION.search(name.lower()) is not None


def _is_name(factor: Factor, runs: Sequence[Run], by: Sequence[Factor]) -> bool:
    """Return whether a setting has another value in every run though groups are repeated, or is a text as well."""
    values = [factor.value(run) for run in runs]
    if len(set(values)) < len(runs):
        return False
    repeated = len({tuple(each.value(run) for each in by) for run in runs}) < len(runs)
    return repeated or not all(_is_number(value) for value in values)


def _is_number(value: str | None) -> bool:
    try:
        float(value or "")
    except ValueError:
        return False
    return True

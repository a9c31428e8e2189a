"""Work that was stated once for several runs, whose params say that they did not do the same."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from gpureport.comparison.setup.job_length import JOB_EPOCHS, JOB_STEPS, find_length_name
from gpureport.comparison.steps.batch_size import batch_size
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.throughput import STEPS
from gpureport.recording import Run
from gpureport.training_names import normalise_work_unit

_BATCH_SIZE = "batch size"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnequalAmounts:
    """What a param says of the work of runs for which one amount was stated.

    Attributes:
        name: of the param, as it is called last: `max_steps`; "batch size" where as many steps took other batches.
        amounts: what it says, each once, the smallest first.
    """

    name: str
    amounts: tuple[float, ...]


def find_unequal_amounts(runs: Iterable[SampledRun]) -> UnequalAmounts | None:
    """Return how the params of runs contradict that they did the same work, which was stated once for all of them.

    None where they do not: without such params, where the training log counts the work, and where more steps took fewer
    samples each.
    """
    alike: defaultdict[tuple[float, str], list[Run]] = defaultdict(list)
    for run in runs:
        info = run.analysis.run
        if info.work is not None and info.work.is_common and run.logged_work is None:
            alike[info.work.amount, info.work.unit].append(info)
    found = (_compare_amounts(same, normalise_work_unit(unit)) for (_, unit), same in alike.items())
    return next(filter(None, found), None)


def _compare_amounts(runs: Sequence[Run], unit: str) -> UnequalAmounts | None:
    """Return the first param by which runs did different work, steps before epochs; None where none tells."""
    for pattern in (JOB_STEPS, JOB_EPOCHS):
        said = [_read_amounts(run.params, pattern) for run in runs]
        names = sorted({name for amounts in said for name in amounts})
        known = {
            name: [(amounts[name], run) for amounts, run in zip(said, runs, strict=True) if name in amounts]
            for name in names
        }
        counts_samples = pattern is JOB_STEPS and unit != STEPS
        unequal = [name for name in names if _differ(known[name], counts_samples=counts_samples)]
        if any(len(known[name]) == len(runs) and name not in unequal for name in names):
            # one length that all runs share is that of the job
            return None
        if unequal:
            return _name_difference(unequal[0], known[unequal[0]])
        if names and all(said):
            # steps end a job, whatever its epochs
            return None
    return None


def _name_difference(name: str, known: Sequence[tuple[float, Run]]) -> UnequalAmounts:
    amounts = {amount for amount, _ in known}
    if len(amounts) == 1:
        name, amounts = _BATCH_SIZE, {size for _, run in known if (size := batch_size(run)) is not None}
    return UnequalAmounts(name=name, amounts=tuple(sorted(amounts)))


def _differ(known: Sequence[tuple[float, Run]], *, counts_samples: bool) -> bool:
    amounts = [amount for amount, _ in known]
    sizes = [batch_size(run) for _, run in known]
    if counts_samples and None not in sizes:
        amounts = [amount * (size or 1.0) for amount, size in zip(amounts, sizes, strict=True)]
    return len(set(amounts)) > 1


@lru_cache(maxsize=256)
def _read_amounts(params: tuple[tuple[str, str], ...], pattern: re.Pattern[str]) -> Mapping[str, float]:
    """Return the lengths of the job that params name, by the last parts of their names; read once for all figures."""
    amounts = {}
    for key, value in params:
        name = find_length_name(key, pattern)
        if name is not None and (amount := _read_number(value)) is not None:
            amounts[name] = amount
    return amounts


def _read_number(text: str) -> float | None:
    """Return a number above 0; None for another text, as -1 stands for no limit."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number > 0 else None

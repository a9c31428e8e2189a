"""Work that was stated once for several runs, whose params say that they did not do the same."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from gpureport.comparison.steps.batch_size import batch_size
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.throughput import STEPS
from gpureport.comparison.verdicts.command_lines import normalize_name
from gpureport.recording import Run
from gpureport.training_names import normalise_work_unit

_STEPS = re.compile(r"(?:(?:max|num|n|total|train|training|max_train|num_train)_)?(?:steps|iterations|iters?)")
_EPOCHS = re.compile(r"(?:(?:max|num|n|total|train|training|num_train)_)?epochs")
_OF_JOB = frozenset({"args", "config", "hparams", "job", "params", "train", "trainer", "training", "training_args"})
"""Parts before the last of a name whose steps are those of the job: `trainer.max_steps`, not `sampler.num_steps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnequalAmounts:
    """What a param says of the work of runs for which one amount was stated.

    Attributes:
        name: of the param, as it is called last: `max_steps`.
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
    for pattern in (_STEPS, _EPOCHS):
        said = [_read_amounts(run, pattern) for run in runs]
        names = sorted({name for amounts in said for name in amounts})
        for name in names:
            known = [(amounts[name], run) for amounts, run in zip(said, runs, strict=True) if name in amounts]
            if _differ(known, counts_samples=pattern is _STEPS and unit != STEPS):
                return UnequalAmounts(name=name, amounts=tuple(sorted({amount for amount, _ in known})))
        if names and all(said):
            # steps end a job, whatever its epochs
            return None
    return None


def _differ(known: Sequence[tuple[float, Run]], *, counts_samples: bool) -> bool:
    amounts = [amount for amount, _ in known]
    sizes = [batch_size(run) for _, run in known]
    if counts_samples and None not in sizes:
        amounts = [amount * (size or 1.0) for amount, size in zip(amounts, sizes, strict=True)]
    return len(set(amounts)) > 1


def _read_amounts(run: Run, pattern: re.Pattern[str]) -> dict[str, float]:
    """Return the amounts of work that the params of a run name, by the last parts of their names."""
    amounts = {}
    for key, value in run.params:
        *parents, last = re.split(r"[./:]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower())
        last = normalize_name(last)
        if pattern.fullmatch(last) and _OF_JOB.issuperset(parents) and (amount := _read_number(value)) is not None:
            amounts[last] = amount
    return amounts


def _read_number(text: str) -> float | None:
    """Return a number above 0; None for another text, as -1 stands for no limit."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number > 0 else None

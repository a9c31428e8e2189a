"""How repetitions are given as one step, said where the folders or the params of single runs look like it."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import combinations

from gpureport.comparison.chain import Comparison
from gpureport.comparison.factors import MOST_FACTORS, describe_factors, is_repetition_param, parse_factors
from gpureport.comparison.folders import step_folders
from gpureport.recording import Run
from gpureport.report.wording import display


def describe_repetitions(comparison: Comparison) -> str:
    """Return how to give the runs of steps as repetitions; empty where a step has several, or nothing suggests it."""
    steps = comparison.steps
    if len(steps) < 2 or any(len(step.runs) > 1 for step in steps):  # noqa: PLR2004 - a comparison
        return ""
    return suggest_repetitions([analysis.run for step in steps for analysis in step.analyses])


def suggest_repetitions(runs: Sequence[Run]) -> str:
    """Return how to give runs as repetitions; empty where they are labelled, or nothing suggests it."""
    if any(run.step is not None for run in runs):
        return ""
    return suggest_by_folder(runs) or suggest_by_params(runs)


def suggest_by_params(runs: Sequence[Run]) -> str:
    """Return how to give runs with equal params as repetitions, where one or two params tell which are equal.

    There have to be several groups, with two runs or more in each on average.
    """
    settings = [_read_settings(run) for run in runs]
    groups = [dict(group) for group in dict.fromkeys(tuple(sorted(each.items())) for each in settings)]
    if not 1 < len(groups) <= len(runs) // 2:
        return ""
    option = next(_list_options(groups), None)
    if option is None:
        return ""
    names = display.clean(describe_factors(parse_factors(option)))
    return (
        f"Runs with the same {names} have equal params: if they repeat a step, add --by {shlex.quote(option)}, so that "
        "repetitions count together."
    )


def _read_settings(run: Run) -> dict[str, str]:
    """Return the params of a run without those by which repetitions differ."""
    return {key: value for key, value in run.params if not is_repetition_param(key)}


def _list_options(groups: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield values of `--by` that tell the groups apart, those with the fewest params first."""
    common = sorted(set.intersection(*map(set, groups)))
    varying = [key for key in common if len({group[key] for group in groups}) > 1]
    for count in range(1, MOST_FACTORS + 1):
        for keys in combinations(varying, count):
            if len({tuple(group[key] for key in keys) for group in groups}) == len(groups):
                yield ",".join(f"param:{key}" for key in keys)


def suggest_by_folder(runs: Sequence[Run]) -> str:
    """Return how to give the runs of a folder as repetitions; empty where their folders do not suggest it.

    They do where there are several, and two runs or more in each on average.
    """
    folders = set(step_folders(runs))
    if None in folders or not 1 < len(folders) <= len(runs) // 2:
        return ""
    return (
        f"The runs lie in {len(folders)} folders: if those of one folder repeat a step, add --by folder, so that "
        "repetitions count together."
    )

"""How repetitions are given as one step, said where the folders of single runs look like it."""

from collections.abc import Sequence

from gpureport.comparison.steps.step_folders import step_folders
from gpureport.recording import Run


def suggest_by_folder(runs: Sequence[Run]) -> str:
    """Return how to give runs as repetitions; empty where they are labelled, or their folders do not suggest it.

    They do where there are several, and two runs or more in each on average.
    """
    if any(run.step is not None for run in runs):
        return ""
    folders = set(step_folders(runs))
    if None in folders or not 1 < len(folders) <= len(runs) // 2:
        return ""
    return (
        f"The runs lie in {len(folders)} folders: if those of one folder repeat a step, add --by folder, so that "
        "repetitions count together."
    )

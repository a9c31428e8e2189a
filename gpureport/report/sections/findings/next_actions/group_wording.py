"""What to do about findings of one kind and cause, in the words that actions and rows of findings share."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.analysis.advice.choose import DOUBLE, ONE_MORE, WORKERS
from gpureport.report.sections.findings.next_actions import action_wording, action_words
from gpureport.report.sections.findings.next_actions.action_words import ActionWording
from gpureport.report.sections.findings.rows import range_wording
from gpureport.report.sections.findings.rows.row_groups import RowGroup

ROOM, OVERSIZED = "mem_headroom", "oversized_gpu"
"""Kinds of which either asks for more use of a GPU, or for a smaller one."""


def choose_wording(group: RowGroup, others: Sequence[RowGroup], stopped: RowGroup | None) -> ActionWording | None:
    """Return what to do about findings, with braces to fill; None where they ask for nothing.

    Args:
        group: the findings.
        others: findings of other kinds, and perhaps these: a larger batch and a smaller GPU are alternatives.
        stopped: the GPUs that stopped in a hang; None where none are known.
    """
    if stopped:
        return action_words.FIND_STOPPED
    if has_alternative(group, others):
        return action_wording.BATCH_OR_SMALLER_GPU
    return action_wording.find_wording(group.kind, group.cause, group.step_names)


def has_alternative(group: RowGroup, others: Sequence[RowGroup]) -> bool:
    """Return whether unused memory and a GPU larger than needed were found in one run, and these are either of them."""
    other = {ROOM: OVERSIZED, OVERSIZED: ROOM}.get(group.kind)
    return any(each.kind == other and set(each.runs) & set(group.runs) for each in others)


def fill_wording(wording: ActionWording, group: RowGroup, stopped: RowGroup | None, watts: int = 0) -> ActionWording:
    """Return words with their braces filled.

    Args:
        wording: the words.
        group: the findings.
        stopped: as above, which are named in place of the GPUs of the findings.
        watts: power limit to try; 0 where none is asked for.
    """
    gpus = {gpu.id: gpu.index for run in group.runs.values() for gpu in run.run.gpus}
    named = dict.fromkeys(device for finding in group.findings for device in finding.devices)
    index = ",".join(str(gpus[device]) for device in named if gpus.get(device) is not None)
    places = {
        "gpus": range_wording.name_gpus(stopped or group),
        "index": index or "0",
        "watts": watts,
        "workers": group.find_suggestion(WORKERS) or (ONE_MORE if WORKERS in group.step_names else DOUBLE),
    }
    return replace(
        wording,
        title=wording.title.format(**places),
        how=wording.how.format(**places),
        command=wording.command.format(**places),
    )

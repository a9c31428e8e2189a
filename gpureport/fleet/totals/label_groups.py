"""All runs by one label: the groups that lost most, and the others as one."""

from collections import defaultdict
from collections.abc import Sequence

from gpureport import label_tags
from gpureport.fleet.fleet_report import Group, Grouping
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.totals.priced_gpu import PricedGpu, find_largest_loss, sum_use

MOST_GROUPS = 20
"""Groups that are listed by themselves: what a page shows without scrolling, and a person can talk to."""
_OWN = ("node", "model", "step")
"""Labels that are facts of a GPU or its run."""


def read_label(summary: GpuSummary, label: str) -> str | None:
    """Return what a run on a GPU is labelled with; None where it is not."""
    if label in _OWN:
        own: str | None = getattr(summary, label)
        return own
    return label_tags.find_label((*summary.params, *summary.tags), label)


def group_runs(gpus: Sequence[PricedGpu], label: str) -> Grouping:
    """Return all runs by one label; runs without it are a group of their own that is always listed."""
    members: defaultdict[str | None, list[PricedGpu]] = defaultdict(list)
    for gpu in gpus:
        members[read_label(gpu.summary, label)].append(gpu)
    groups = sorted((_build_group(name, own) for name, own in members.items()), key=_rank)
    listed = groups[:MOST_GROUPS]
    listed += [group for group in groups[MOST_GROUPS:] if group.name is None]
    rest = [group.name for group in groups if group not in listed]
    joined = _build_group(None, [gpu for name in rest for gpu in members[name]], len(rest)) if rest else None
    return Grouping(label=label, groups=tuple(listed), rest=joined)


def _build_group(name: str | None, gpus: Sequence[PricedGpu], groups: int = 1) -> Group:
    return Group(name=name, use=sum_use(gpus), largest_loss=find_largest_loss(gpus), groups=groups)


def _rank(group: Group) -> tuple[float, float, str]:
    return -group.use.lost_gpu_seconds, -group.use.gpu_seconds, group.name or ""

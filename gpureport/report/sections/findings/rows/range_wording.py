"""How much there is of a kind over several runs, in words made from the evidence."""

from functools import partial
from string import Formatter

from gpureport.report.runs.gpu_time import name_whole
from gpureport.report.sections.findings.rows.range_table import LOST, RANGES, Figure, RangeWording
from gpureport.report.sections.findings.rows.row_groups import RowGroup, list_devices
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_gpu_time_range, format_range

_FALLBACK = RangeWording(extent=LOST)


def describe_extent(group: RowGroup, *, several: bool) -> str:
    """Return how much there is of a kind over all runs; empty where no figure says so.

    Args:
        group: the findings.
        several: whether the report holds several runs.
    """
    wording = RANGES.get(group.kind, _FALLBACK)
    return _fill(wording.extent, group, several=several) or _fill(LOST, group, several=several)


def describe_range(group: RowGroup, *, several: bool = True) -> str:
    """Return one sentence over all findings; empty where the kind has none, or evidence for it is missing.

    Args:
        group: the findings.
        several: whether the report holds several runs.
    """
    wording = RANGES.get(group.kind, _FALLBACK)
    return capitalize(_fill(wording.summary, group, several=several))


def _fill(template: str, group: RowGroup, *, several: bool) -> str:
    """Return a template with its figures; empty where one of them is not known."""
    wording = RANGES.get(group.kind, _FALLBACK)
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    texts = {name: _figure_text(name, group, wording, several=several) for name in names}
    return template.format(**texts) if all(texts.values()) else ""


def _figure_text(name: str, group: RowGroup, wording: RangeWording, *, several: bool) -> str:
    if name in wording.figures:
        return _evidence_range(group, wording.figures[name])
    if name == "run":
        return "a run" if several else name_whole(group.runs.values())
    if name == "gpus":
        return name_gpus(group)
    if name == "lost_share":
        return format_range(group.lost_shares, display.percent) if any(group.lost_shares) else ""
    return format_lost(group)


def _evidence_range(group: RowGroup, figure: Figure) -> str:
    found = group.evidence(figure.metric, figure.statistics)
    if not found:
        return ""
    unit = figure.unit or found[0].unit
    return format_range([figure.convert(entry.observed) for entry in found], partial(display.quantity, unit=unit))


def format_lost(group: RowGroup) -> str:
    """Return the least and the most that a run lost: a length of time where runs have one GPU, else GPU time."""
    single = all(len(run.run.gpus) == 1 for run in group.runs.values())
    amounts = list(group.lost_by_run.values())
    if not any(amounts):
        return ""
    return format_range(amounts, display.duration) if single else format_gpu_time_range(amounts)


def name_gpus(group: RowGroup) -> str:
    """Return the GPUs concerned: by name where all runs name the same, `the GPU` where runs have one."""
    names = list_devices(group)
    single = all(len(run.run.gpus) == 1 for run in group.runs.values())
    return "the GPU" if single and len(group.runs) > 1 else names[0] if len(names) == 1 else "GPUs"


def capitalize(text: str) -> str:
    """Return a sentence with its first letter large."""
    return f"{text[:1].upper()}{text[1:]}"

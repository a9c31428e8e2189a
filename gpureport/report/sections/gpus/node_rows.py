"""Rows of a table of many GPUs: one a node, and one for each GPU that differs from the others."""

from collections.abc import Callable, Iterator, Sequence

from gpureport.recording import Device
from gpureport.report.model.shapes import Cell, Row
from gpureport.report.runs.drawn_gpus import group_by_node
from gpureport.report.wording import display

NOTE = (
    "A row is a node: means of its GPUs, their highest temperature and peak memory, their energy together, their least "
    "free memory; below it the GPUs that differ from all others."
)
_MOST_GPUS = 30

Values = Sequence[float | None]
Summary = Callable[[Sequence[float]], float]


def build_node_rows(
    gpus: Sequence[Device],
    rows: Sequence[Row],
    columns: Sequence[tuple[Values, Summary, Callable[[float], str]]],
) -> Iterator[Row]:
    """Yield a row for each node, each followed by the rows of its GPUs that differ.

    Args:
        gpus: the GPUs.
        rows: a row for each GPU, whose flagged cells differ.
        columns: of each column the value of each GPU, how values of several become one, and how one is written.
    """
    place_of = {gpu.id: place for place, gpu in enumerate(gpus)}
    listed = 0
    for node, own in group_by_node(gpus).items():
        places = [place_of[gpu.id] for gpu in own]
        name = f"{display.clean(node)}, {len(own)} GPUs" if node else f"All {len(own)} GPUs"
        yield Row(head=Cell(text=name), cells=tuple(_summarise(column, places) for column in columns))
        for place in places:
            if listed < _MOST_GPUS and any(cell.flagged for cell in rows[place].cells):
                listed += 1
                yield rows[place]


def _summarise(column: tuple[Values, Summary, Callable[[float], str]], places: Sequence[int]) -> Cell:
    values, summary, shown = column
    known = [value for place in places if (value := values[place]) is not None]
    value = summary(known) if known else None
    return Cell(text=display.or_not_recorded(value, shown), value=value)

"""What a run had learned at its end: a faster step that trains worse is no gain."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport import columns
from gpureport.training_names import Role, recognise_metric

if TYPE_CHECKING:
    import pyarrow as pa

_QUALITY = {Role.LOSS, Role.ERROR, Role.ACCURACY}
_LAST = 0.1
"""Share of the points, from the end, that a figure is the mean of: one point alone scatters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFigure:
    """The mean of the last points of a training metric."""

    name: str
    value: float


def training_figures(training: "pa.Table") -> tuple[TrainingFigure, ...]:
    """Return the final value of every metric whose name marks it as a loss, an error or an accuracy."""
    if not len(training):
        return ()
    column: Any = training.column("name")
    names = np.array(column.to_pylist(), dtype=object)
    values, times = columns.floats(training.column("value")), columns.integers(training.column("timestamp"))
    order = np.argsort(times, kind="stable")
    figures = []
    for name in sorted(filter(_tells_quality, {str(each) for each in names})):
        points = values[order][(names == name)[order]]
        points = points[np.isfinite(points)]
        if len(points):
            last = points[-max(round(len(points) * _LAST), 1) :]
            figures.append(TrainingFigure(name=name, value=float(last.mean())))
    return tuple(figures)


def _tells_quality(name: str) -> bool:
    said = recognise_metric(name)
    return said is not None and said.role in _QUALITY

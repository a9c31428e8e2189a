"""Small multiples: a chart of groups by two settings as one panel a value of the first, on one scale."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpureport.comparison.study import Study
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow
from gpureport.report.wording import display

_NO_RUN = "no run"
_ABSENT = "not given"


def split_into_panels(chart: IntervalChart, study: Study) -> Iterator[IntervalChart]:
    """Yield a panel for each value of the first setting, its bars by the second, a place left where no run is.

    Args:
        chart: bars of all groups in their order.
        study: the groups, by two settings.
    """
    rows = dict(zip((group.values for group in study.groups), chart.rows, strict=True))
    most = max(_find_end(row) for row in chart.rows)
    first, second = (display.clean(factor.name) for factor in study.by)
    for value in study.values[0]:
        panel = tuple(_label_row(rows, (value, other), f"{second}={_format_value(other)}") for other in study.values[1])
        title = f"{chart.title}: {first}={_format_value(value)}"
        if any(row.value is not None for row in panel):
            yield replace(chart, title=title, rows=panel, end=most)


def _find_end(row: IntervalRow) -> float:
    return max(row.value or 0.0, *(row.interval or ()), *(dot.value for dot in row.runs), 0.0)


def _label_row(
    rows: Mapping[tuple[str | None, ...], IntervalRow], values: tuple[str | None, ...], label: str
) -> IntervalRow:
    """Return the row of a group under the value of the second setting."""
    row = rows.get(values)
    if row is None:
        return IntervalRow(label=label, value=None, interval=None, text=_NO_RUN)
    count = f" ({len(row.runs)} runs)" if len(row.runs) > 1 else ""
    return replace(row, label=f"{label}{count}")


def _format_value(value: str | None) -> str:
    return _ABSENT if value is None else display.clean(value)

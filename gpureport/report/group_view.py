"""Steps as groups: means with their intervals, how work scales, and which batch fits."""

from collections.abc import Callable, Iterator, Sequence

from gpureport.comparison.across_runs import HEADROOM, BatchSize, Mean, Scaling, groups, largest_batch, scaling
from gpureport.comparison.steps import Step
from gpureport.report import display
from gpureport.report.parts import Cell, Fact, Row, Table

_LABEL = 24
_BAR = 20


def table(steps: Sequence[Step]) -> Table:
    """Return one row a step: utilisation and work per GPU-hour with their intervals, and a bar of each."""
    found = groups(steps)
    rates = [group.work_per_gpu_hour.value for group in found if group.work_per_gpu_hour]
    best = max(rates, default=0.0)
    rows = tuple(
        Row(
            head=Cell(text=display.squeeze(display.clean(group.label), _LABEL)),
            cells=(
                Cell(text=str(group.runs)),
                *_shown(group.utilisation, display.percent, 1.0),
                *(_shown(group.work_per_gpu_hour, display.number, best) if rates else ()),
            ),
        )
        for group in found
    )
    interval = f"95{display.GAP}% interval"
    names = ("Step", "Runs", "GPU utilisation", interval, "", *(("Work per GPU-hour", interval, "") if rates else ()))
    return Table(columns=names, numeric=(True, *(True, True, False) * (2 if rates else 1)), rows=rows)


def _shown(mean: Mean | None, text: Callable[[float], str], most: float) -> Iterator[Cell]:
    """Yield a mean, its interval, and a bar as long as its share of the most."""
    if mean is None:
        yield from (Cell(text=display.NOT_RECORDED), Cell(text=""), Cell(text=""))
        return
    yield Cell(text=text(mean.value), value=mean.value)
    yield Cell(text=f"{text(mean.interval[0])} to {text(mean.interval[1])}" if mean.interval else "")
    yield Cell(text="█" * round(_BAR * min(mean.value / most, 1.0)) if most > 0 else "")


def facts(steps: Sequence[Step]) -> Iterator[Fact]:
    """Yield how work scales with GPUs, and the largest batch that fits, where either can be told."""
    for found in scaling(steps):
        yield Fact(name="Scaling", text=_scaled(found))
    batch = largest_batch(steps)
    if batch is not None:
        yield Fact(name="Batch size", text=_batch(batch))


def _scaled(found: Scaling) -> str:
    between = ""
    if found.interval:
        between = f" (95{display.GAP}% interval {' to '.join(map(display.percent, found.interval))})"
    labels = f"{display.clean(found.step)} against {display.clean(found.base)}"
    return (
        f"{labels}: {found.gpus[1]} GPUs instead of {found.gpus[0]} do {display.percent(found.efficiency)} of the work "
        f"per GPU-hour{between}."
    )


def _batch(batch: BatchSize) -> str:
    sizes = display.listing([display.integer(size) for size in batch.sizes])
    if batch.max_batch is None:
        return f"Recorded at {sizes}. {batch.reason}"
    return (
        f"Recorded at {sizes}: one more takes {display.memory(batch.bytes_each)}, so up to "
        f"{display.integer(batch.max_batch)} would fit with {display.percent(HEADROOM)} left free, as far as memory "
        "goes on growing so."
    )

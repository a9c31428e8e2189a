"""Which runs of an experiment tracker to read, and what it does not know of them."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.options.option_values import Price

if TYPE_CHECKING:
    from gpureport.importers.protocol.tracker import Selection

TRACKER_OPTIONS = (
    click.option("--run", multiple=True, metavar="RUN", help="Run of a tracker, by id or name (repeatable)."),
    click.option("--experiment", metavar="NAME", help="Experiment of a tracker."),
    click.option("--project", metavar="NAME", help="Project of a tracker."),
    click.option("--filter", metavar="TEXT", help="Filter for runs, in the tracker's own syntax."),
    click.option("--latest", type=click.IntRange(1), metavar="N", help="Read only the newest N runs of a tracker."),
    click.option("--children", is_flag=True, help="Also read runs nested in a run of a tracker."),
    click.option("--stage", metavar="NAME", help="Keep one stage of a run, such as training."),
    click.option(
        "--group",
        metavar="NAME",
        help="Read local recordings of a tracker, all or those of --run, as one run of this name.",
    ),
    click.option(
        "--gpu-memory-total", type=Price(), metavar="GIB", help="Memory of each GPU, if the tracker does not record it."
    ),
    click.option("--throughput", metavar="KEY", help="Training metric that counts the work done."),
    click.option("--require-hardware", is_flag=True, help="Fail if a run of a tracker has no hardware series."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerOptions:
    """Which runs of a tracker to read; `gpu_memory_total` is in GiB."""

    run: tuple[str, ...] = ()
    experiment: str | None = None
    project: str | None = None
    filter: str | None = None
    latest: int | None = None
    children: bool = False
    stage: str | None = None
    group: str | None = None
    gpu_memory_total: float | None = None
    throughput: str | None = None
    require_hardware: bool = False

    def selection(self, column_map: Path | None) -> "Selection":
        """Return which runs to read, with the file on the meaning of a person's own series."""
        from gpureport.importers.protocol.tracker import Selection  # noqa: PLC0415 - importers load pyarrow

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        memory = values.pop("gpu_memory_total")
        total = None if memory is None else round(memory * 2**30)
        return Selection(runs=values.pop("run"), gpu_memory_total=total, map=column_map, **values)

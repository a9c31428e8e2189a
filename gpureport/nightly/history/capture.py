"""Runs, missing sources and checks as the history records them."""

from dataclasses import replace
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpureport.findings import Check
from gpureport.nightly.history.night_figures import measure_figures
from gpureport.nightly.history.nightly_record import WORK, NightlyRun
from gpureport.recording import Run

if TYPE_CHECKING:
    from gpureport.comparison.run import SampledRun


def source_name(source: str) -> str:
    """Return the name of a source in the history: its file name, without folders of the machine."""
    return source if source.startswith(("mlflow:", "neptune:", "trackio:")) else PurePath(source).name or source


def capture_run(source: str, run: "SampledRun") -> NightlyRun:
    """Return a run as the history records it.

    Args:
        source: what it was read from, as named on the command line.
        run: the run with its analysis.
    """
    known = run.analysis.run
    drivers = sorted({gpu.driver for gpu in known.gpus if gpu.driver})
    return NightlyRun(
        source=source_name(source),
        run_id=known.id,
        name=known.name,
        step=known.step or "",
        model=name_models(known),
        gpus=len(known.gpus),
        started=known.started,
        params=tuple(sorted(dict([*_name_work(run), *known.params]).items())),
        driver=", ".join(drivers),
        figures=measure_figures(run),
    )


def name_models(run: Run) -> str:
    """Return the models of a run's GPUs, by which nights are followed."""
    return ", ".join(sorted({gpu.model for gpu in run.gpus if gpu.model}))


def _name_work(run: "SampledRun") -> list[tuple[str, str]]:
    """Return the work of a run as a param, so that a change of it is listed; of a part of one, the unit alone.

    Work that is counted from a log ends in fractions, which differ from night to night.
    """
    work = run.analysis.run.work
    if work is None:
        return []
    amount = f"{work.amount:.0f} " if work.amount.is_integer() else ""
    return [(WORK, f"{amount}{work.unit}")]


def capture_missing(source: str, step: str, reason: str) -> NightlyRun:
    """Return the record of a source without data.

    Args:
        source: the source, as named on the command line.
        step: label of the step its run would have had; empty without one.
        reason: why there are no data, in one sentence.
    """
    return NightlyRun(source=source_name(source), name=source, step=step, reason=reason)


def capture_check(check: Check) -> Check:
    """Return a check as the history records it: the file that states it by its name alone."""
    value = check.value if check.value is not None and isfinite(check.value) else None
    return replace(check, origin=PurePath(check.origin).name, value=value)

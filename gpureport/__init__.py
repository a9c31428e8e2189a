"""Reads the GPU logs a training run left behind and says where the GPU time went, and why.

The command line is `gpureport`; from Python, `read` gives recordings and `analyze` what can be said of one.
"""

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpureport.analysis.results import Analysis
    from gpureport.importers import Labels, ReadOptions, Selection
    from gpureport.recording import Recording

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "read"]


def read(  # noqa: PLR0913 - each is given by name
    source: "str | Path",
    *,
    host: "Sequence[str | Path]" = (),
    placement: "ReadOptions | None" = None,
    labels: "Labels | None" = None,
    as_one_run: bool = False,
    selection: "Selection | None" = None,
) -> list["Recording"]:
    """Return every run that a log, a folder of logs, or the store of a tracker holds.

    Args:
        source: a log, a folder with logs in it or below, or `mlflow:STORE#RUN`.
        host: CPU logs to join by time.
        placement: options that select or place rows.
        labels: what is said about the runs.
        as_one_run: whether all logs of the folder are one run.
        selection: which runs of a tracker are meant.

    Raises:
        SourceError: when the source is missing or holds nothing that can be used.

    Warns:
        UserWarning: of a run of a tracker that cannot be read and was not asked for by itself.
    """
    from gpureport import importers  # noqa: PLC0415 - loads pyarrow, which `import gpureport` must not

    options = placement or importers.ReadOptions(), labels or importers.Labels()
    tracking = None if as_one_run else importers.tracker(str(source))
    if tracking is not None:
        meant, faults = importers.readable(tracking.runs(str(source), selection or importers.Selection()).runs)
        for fault in faults:
            warnings.warn(f"{fault}; the other runs are read", stacklevel=2)
        joined = importers.joined
        return [
            importers.TrackedReading(tracking.kind, run, *options, strict=False, joined=joined).recording()
            for run in meant
        ]
    if as_one_run:
        return [importers.Reading(importers.together([source], host), *options, as_one_run=True).recording()]
    return [
        importers.Reading(inputs, *options, training=importers.training_logs_in_folder(source, inputs)).recording()
        for inputs in importers.find(source, host)
    ]


def analyze(recording: "Recording") -> "Analysis":
    """Return all that can be said about one run."""
    from gpureport import analysis  # noqa: PLC0415 - as above

    return analysis.analyze(recording)

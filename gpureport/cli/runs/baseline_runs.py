"""The runs of a baseline: a named one, any source, or a run of the store."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gpureport.cli.runs import named_runs
from gpureport.cli.sources import source_names
from gpureport.errors import SettingsError, StoreError

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.recording import Recording


def read_baseline_runs(name: str, options: "SourceOptions") -> "list[Recording]":
    """Return the runs of a baseline: of a file, folder or tracker, else named, else stored.

    Raises:
        SourceError: when a source cannot be read.
        StoreError: when there is no baseline and no run of that name, or it is damaged.
    """
    from gpureport.nightly.history.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    # labels of the checked runs are not those of the baseline
    unlabelled = options.with_labels(name=None, step=(), work=())
    if source_names.is_source(name, options):
        unlabelled_source = replace(unlabelled, input=replace(options.input, host=(), training=()))
        return named_runs.read_recordings([name], unlabelled_source)
    try:
        return read_baseline(source_names.find_store(options), name.removeprefix(source_names.BASELINE))
    except (StoreError, SettingsError) as error:
        if not source_names.is_stored(name, options):
            raise StoreError(error.where, error.what, error.hint, code=error.code) from error
        return named_runs.read_recordings([name], unlabelled)

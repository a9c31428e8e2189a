"""A store of sample logs, for tests that summarise runs."""

from pathlib import Path

from gpureport.fleet.running.fleet_summaries import FleetSummaries, SelectedRuns, summarise_runs
from gpureport.fleet.running.task_pool import Engine
from gpureport.fleet.summaries.summary_key import read_summary_settings
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.resources import find_shipped_folder
from gpureport.settings import Settings
from gpureport.store import Store
from gpureport.store.store import Entry
from tests.fleet.generated_fleet import FleetTruth, generate_fleet


def store_sample(store: Path, name: str, **tags: str) -> Entry:
    """Read a sample log into a store, and return the run."""
    (inputs,) = find_runs(str(find_shipped_folder("sample_logs") / name))
    reading = Reading(inputs, ReadOptions(), Labels(tags=tuple(tags.items())))
    return Store(store).write(reading, IMPORTER_VERSION)


def store_fleet(store: Path, runs: int) -> FleetTruth:
    """Read the logs of a generated fleet into a store under the labels of their jobs, and return what they hold."""
    logs = store.with_name("logs")
    truth = generate_fleet(logs, runs)
    for name, tags in truth.tags.items():
        (inputs,) = find_runs(str(logs / name))
        Store(store).write(Reading(inputs, ReadOptions(), Labels(tags=tuple(tags.items()))), IMPORTER_VERSION)
    return truth


def summarise_store(
    store: Path, engine: Engine, settings: Settings | None = None, names: list[str] | None = None
) -> FleetSummaries:
    """Return the summaries of all runs of a store; the names of those that were analysed go into a list."""
    runs = Store(store).index().runs
    selected = SelectedRuns(store=store, runs=runs, every_run=frozenset(run.id for run in runs))
    seen = names if names is not None else []
    return summarise_runs(
        selected, read_summary_settings(settings or Settings()), engine, lambda _, __, name: seen.append(name)
    )

"""The key of a summary changes with what the summary is made from, and with nothing else."""

from dataclasses import replace

from gpureport.fleet.summaries.summary_key import KeyMaker, read_summary_settings
from gpureport.settings import Settings
from gpureport.store.indexed_run import summarise_stored_run
from gpureport.store.run_json import StoredRun
from gpureport.testing import recording

PLAIN = KeyMaker(read_summary_settings(Settings()))


def make_key(keys: KeyMaker = PLAIN, **changes: object) -> str:
    """Return the key of a run with some changes."""
    run = summarise_stored_run(StoredRun(run=recording(util=[0.0]).run, columns=(), importer_version="1"))
    return keys.make_key(replace(run, **changes))  # type: ignore[arg-type]  # what tests vary


def test_what_a_summary_depends_on() -> None:
    """The series, the importers, params, tags that rules read, and thresholds."""
    other = KeyMaker(read_summary_settings(Settings(content={"rules": {"idle_gap": {"shortest": 99}}})))
    keys = [
        make_key(),
        make_key(id="b"),
        make_key(series_sha256="t"),
        make_key(training_sha256="t"),
        make_key(importer_version="2"),
        make_key(params=(("lr", "0.1"),)),
        make_key(tags=(("num_workers", "8"),)),
        make_key(tags=(("framework", "jax"),)),
        make_key(tags=(("epochs", "8"),)),
        make_key(other),
    ]
    assert len(set(keys)) == len(keys)


def test_whose_run_it_is_changes_no_key() -> None:
    """Labelling ten thousand runs analyses none again; neither do prices nor the place of the settings."""
    assert make_key(tags=(("user", "ann"), ("job", "7"), ("node", "n1"))) == make_key()
    elsewhere = Settings(file="elsewhere.toml", content={"prices": {"gpu_hour": 2.0}})
    assert make_key(KeyMaker(read_summary_settings(elsewhere))) == make_key()

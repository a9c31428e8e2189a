"""The summaries of a store: only what is new is analysed, and one bad run harms no other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.analysis import analyze
from gpureport.analysis.results import Analysis
from gpureport.analysis.rules.rule import Rule
from gpureport.fleet.running.engines import open_engine
from gpureport.recording import Recording
from gpureport.settings import Settings
from gpureport.store import Store
from tests.fleet.stored_samples import store_sample, summarise_store

ENGINE = open_engine("local", None, 1)


def test_only_what_is_new_is_analysed(tmp_path: Path) -> None:
    """A second time nothing, then the new run alone; other thresholds concern all."""
    store_sample(tmp_path, "healthy")
    names: list[str] = []
    first = summarise_store(tmp_path, ENGINE, names=names)
    assert (names, first.analysed) == (["healthy"], 1)
    again = summarise_store(tmp_path, ENGINE, names=names)
    assert (again.summaries, again.analysed) == (first.summaries, 0)
    store_sample(tmp_path, "idle_gap")
    assert summarise_store(tmp_path, ENGINE, names=names).analysed == 1
    assert names == ["healthy", "idle_gap"]
    other = Settings(content={"rules": {"idle_gap": {"shortest": 99}}})
    assert summarise_store(tmp_path, ENGINE, other).analysed == 2


def test_labels_are_those_of_now(tmp_path: Path) -> None:
    """A run that is labelled later is not analysed again, and carries its labels."""
    entry = store_sample(tmp_path, "healthy")
    summarise_store(tmp_path, ENGINE)
    tags = (("user", "ann"), ("node", "n7"))
    Store(tmp_path).relabel(entry, replace(entry.run, tags=tags))
    later = summarise_store(tmp_path, ENGINE)
    assert later.analysed == 0
    assert {(gpu.tags, gpu.node) for gpu in later.summaries} == {(tags, "n7")}
    assert {gpu.node for gpu in summarise_store(tmp_path, ENGINE).summaries} == {"n7"}


def test_a_corrupt_run_is_a_summary_with_its_error(tmp_path: Path) -> None:
    """It is named, is tried again each time, and is whole once it was ingested again."""
    entry = store_sample(tmp_path, "healthy")
    store_sample(tmp_path, "idle_gap")
    series = entry.folder / "hardware.parquet"
    whole = series.read_bytes()
    series.write_bytes(whole[:1000])
    broken = summarise_store(tmp_path, ENGINE)
    failed = [gpu for gpu in broken.summaries if gpu.error]
    assert [(gpu.run_name, gpu.error) for gpu in failed] == [("healthy", "damaged or missing; ingest the run again")]
    assert broken.analysed == 2
    series.write_bytes(whole)
    mended = summarise_store(tmp_path, ENGINE)
    assert mended.analysed == 1
    assert not any(gpu.error for gpu in mended.summaries)


def test_a_fault_of_gpureport_is_an_error_with_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is named; the others are summarised."""
    store_sample(tmp_path, "healthy")
    store_sample(tmp_path, "idle_gap")

    def fail(recording: Recording, rules: Sequence[Rule]) -> Analysis:
        if recording.run.name == "healthy":
            raise ZeroDivisionError
        return analyze(recording, rules)

    monkeypatch.setattr("gpureport.fleet.running.summary_task.analyze", fail)
    done = summarise_store(tmp_path, ENGINE)
    (failed,) = (gpu for gpu in done.summaries if gpu.error)
    assert failed.error.startswith("internal error (ZeroDivisionError")
    assert [(name, "ZeroDivisionError" in trace) for name, trace in done.traces] == [("healthy", True)]


def test_a_removed_run_is_forgotten(tmp_path: Path) -> None:
    """Its summaries go with the next run of the command."""
    entry = store_sample(tmp_path, "healthy")
    store_sample(tmp_path, "idle_gap")
    summarise_store(tmp_path, ENGINE)
    Store(tmp_path).remove(entry)
    assert {gpu.run_name for gpu in summarise_store(tmp_path, ENGINE).summaries} == {"idle_gap"}


def test_a_damaged_table_is_made_again(tmp_path: Path) -> None:
    """It is named, and its runs are analysed again."""
    store_sample(tmp_path, "healthy")
    first = summarise_store(tmp_path, ENGINE)
    table = tmp_path / "fleet" / "summaries.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    again = summarise_store(tmp_path, ENGINE)
    assert (again.damaged, again.analysed, again.summaries) == ((table,), 1, first.summaries)
    assert table.read_bytes() == whole

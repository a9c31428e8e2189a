"""A history of files: added to, merged, and read by any tool."""

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from gpureport.errors import StoreError
from gpureport.nightly.history import record_file
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.night_history import History, first_night_of_run, keep_latest_records
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun, Params
from gpureport.testing import Check, CheckOutcome
from tests.local_place import local
from tests.nightly.made import day, night, part, year


def dates(history: History) -> list[tuple[str, int, int]]:
    """Return each night with how many runs it has, and how many sources without data."""
    return [(each.date, len(each.measured_runs), len(each.missing_runs)) for each in history.read_latest()]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """A night comes back whole: null stays null, 0 stays 0, and params of any text stay what they are."""
    full = part({"idle_ratio": 0.0, "lost_ratio": None, "energy_joules": 1.25e7}, params=(("opt", 'a "b"\n→'),))
    written = night(
        1, full, capture_missing("x.csv", "s", "no such file or run"), label="abc", recorded=1_773_400_000_123_456
    )
    path = local(History(tmp_path).append(written))
    (read,) = History(tmp_path).read_all()
    assert read.runs == written.runs
    assert (read.date, read.label, read.recorded, read.id) == (day(1), "abc", written.recorded, written.id)
    assert (read.page, path.name) == (written.id, f"{written.id}.parquet")
    assert path.stat().st_size < 10_000


def test_limits_are_kept_with_the_night(tmp_path: Path) -> None:
    """They come back as they were; a night without any is named as before there were any."""
    held = (
        Check(limit="idle_ratio <= 5%", run="bert", outcome=CheckOutcome.BROKEN, value=0.09, bounds=(0.08, 0.1)),
        Check(limit="no idle_gap", run="other", outcome=CheckOutcome.PASSED, observed="no finding"),
    )
    plain = night(0, part({"idle_ratio": 0.09}), part({"idle_ratio": 0.01}, 1, name="other"))
    history = History(tmp_path)
    history.append(replace(plain, checks=held))
    (found,) = history.read_latest()
    assert found.checks == held
    assert set(parquet.read_schema(local(history.append(plain))).metadata or {}) == {b"gpureport.history"}
    rows = pa.concat_tables(parquet.read_table(path) for path in sorted(local(history.folder).iterdir()))
    assert len(rows) == 4 * len(plain.runs[0].figures)
    again = replace(night(0, part({"idle_ratio": 0.02}), recorded=9), checks=held[:1])
    both = keep_latest_records([replace(plain, checks=held), again])
    assert [[check.run for check in each.checks] for each in both] == [["other"], ["bert"]]


def test_one_table_for_any_tool(tmp_path: Path) -> None:
    """All nights are one table with a type for each column; a night without data is a row that says why."""
    history = History(tmp_path)
    history.append(night(0, part({"idle_ratio": 0.1})))
    history.append(night(1, capture_missing("gpu.csv", "", "no such file or run")))
    table = pa.concat_tables(parquet.read_table(path) for path in sorted(local(history.folder).iterdir()))
    rows = table.to_pylist()
    assert len(rows) == 21
    assert [row["value"] for row in rows if row["metric"] == "idle_ratio"] == [0.1]
    assert {row["value"] for row in rows if row["metric"] == "gpu_power_watts"} == {None}
    last = rows[-1]
    assert (last["status"], last["reason"], last["metric"]) == ("no data", "no such file or run", None)


def test_the_same_night_twice_is_one(tmp_path: Path) -> None:
    """Recorded again, nothing is added; recorded again with another label, the run is shown once, as said last."""
    history = History(tmp_path)
    for recorded in (1, 2):
        history.append(night(0, part({"idle_ratio": 0.1}), recorded=recorded))
    assert len(list(history.folder.iterdir())) == 1
    history.append(night(0, part({"idle_ratio": 0.1}), label="again", recorded=3))
    assert len(history.read_all()) == 2
    (shown,) = history.read_latest()
    assert shown.label == "again"


def test_a_night_recorded_as_it_once_was_is_the_latest_again(tmp_path: Path) -> None:
    """A run may be labelled otherwise, and back: the file that is there already is older than what came between."""
    history = History(tmp_path)
    for recorded, step in enumerate(("base", "larger", "base"), start=1):
        history.append(night(1, replace(part({"idle_ratio": 0.1}), step=step), recorded=recorded))
    assert [run.step for each in history.read_latest() for run in each.runs] == ["base"]


def test_a_source_found_later_fills_its_gap_and_no_other(tmp_path: Path) -> None:
    """What a retry finds takes the place of the gap of the same night, step and source."""
    history = History(tmp_path)
    history.append(
        night(0, capture_missing("gpu.csv", "", "no such file"), capture_missing("other.csv", "", "no such file"))
    )
    history.append(night(1, capture_missing("gpu.csv", "", "no such file")))
    history.append(night(0, part({"idle_ratio": 0.1}), recorded=9))
    assert dates(history) == [(day(0), 0, 1), (day(0), 1, 0), (day(1), 0, 1)]
    assert [each.source for each in history.read_latest()[0].missing_runs] == ["other.csv"]


def test_a_page_keeps_its_name_when_a_part_is_replaced(tmp_path: Path) -> None:
    """The report of a night with a part left is found under the name it was written by."""
    history = History(tmp_path)
    first = night(0, part({"idle_ratio": 0.1}, 1), part({"idle_ratio": 0.2}, 2))
    history.append(first)
    history.append(night(0, part({"idle_ratio": 0.3}, 2), recorded=5))
    assert history.read_latest()[0].page == first.id
    assert dates(history) == [(day(0), 1, 0), (day(0), 1, 0)]


def test_merging_is_copying(tmp_path: Path) -> None:
    """Folders of several jobs, in any order and overlapping, give the same history."""
    chance = random.Random(5)
    all_nights = year(40)
    one, both = History(tmp_path / "one"), History(tmp_path / "both")
    jobs = [History(tmp_path / f"job-{number}") for number in range(3)]
    for each in all_nights:
        one.append(each)
        for job in chance.sample(jobs, chance.randint(1, 3)):
            job.append(each)
    both.folder.mkdir(parents=True)
    for job in chance.sample(jobs, 3):
        for path in local(job.folder).iterdir():
            shutil.copy(path, local(both.folder))
    assert both.read_latest() == one.read_latest()
    assert [each.date for each in one.read_latest()] == [each.date for each in all_nights]


def test_when_a_run_was_recorded() -> None:
    """A run is known by the first night that has it."""
    both = [night(4, part({}, 7)), night(2, part({}, 7)), night(3, capture_missing("gpu.csv", "", "gone"))]
    assert first_night_of_run(both, f"{7:08x}") == day(2)
    assert first_night_of_run(both, "none") is None


@pytest.mark.parametrize("damage", ["cut", "renamed", "other", "newer", "empty", "params", "deep"])
def test_a_damaged_night_is_said(tmp_path: Path, damage: str) -> None:
    """A night that cannot be read is an error that names the file, never a night less."""
    history = History(tmp_path)
    path = local(history.append(night(0, part({"idle_ratio": 0.1}))))
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-9])
    elif damage == "renamed":
        path = path.rename(path.with_name(f"{day(1)}-0123456789abcdef.parquet"))
    elif damage in {"params", "deep"}:
        params = "[1]" if damage == "params" else "[" * 9999
        changed = [row | {"params": params} for row in parquet.read_table(path).to_pylist()]
        parquet.write_table(pa.Table.from_pylist(changed, schema=record_file.SCHEMA), path)
    elif damage == "newer":
        key = {b"gpureport.history": b"2"}
        parquet.write_table(parquet.read_table(path).replace_schema_metadata(key), path)
    else:
        rows = [] if damage == "empty" else [{"a": 1}]
        parquet.write_table(pa.Table.from_pylist(rows, schema=None if rows else record_file.SCHEMA), path)
    with pytest.raises(StoreError, match="cannot be read as a night") as raised:
        history.read_latest()
    assert raised.value.where == str(path)


def test_any_flipped_byte_is_said_or_harmless(tmp_path: Path) -> None:
    """A byte flipped anywhere is an error, or changes nothing that is read."""
    history = History(tmp_path)
    path = history.append(night(0, part({"idle_ratio": 0.1, "lost_ratio": 0.2}), label="abc", recorded=7))
    content, whole = path.read_bytes(), history.read_all()
    said = 0
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x21]) + content[place + 1 :])
        try:
            (read,) = history.read_all()
        except StoreError:
            said += 1
        else:
            assert replace(read, recorded=7) == whole[0]
    assert said > len(content) / 7 / 4


def test_nothing_recorded_is_no_error(tmp_path: Path) -> None:
    """A store without a history has no nights."""
    assert History(tmp_path).read_latest() == []


def test_sources_tell_nothing_of_the_machine() -> None:
    """The name of a file is kept, not where it lies."""
    assert capture_missing("/home/ada/secret/gpu.csv", "", "gone").source == "gpu.csv"
    assert capture_missing("mlflow:http://host#run", "", "gone").source == "mlflow:http://host#run"
    assert isinstance(night(0), NightlyRecord)
    assert NightlyRun(source="x").run_id is None


@pytest.mark.parametrize(
    ("params", "unit"),
    [
        ((("--work", "12000 steps"), ("work", "3 nodes")), "steps"),
        ((("--work", "epochs"),), "epochs"),
        ((("work", "3 nodes"),), ""),
    ],
)
def test_a_param_of_a_person_is_not_taken_for_the_work(params: Params, unit: str) -> None:
    """A part of an epoch keeps its unit, though it is counted anew each night."""
    assert NightlyRun(source="a", params=params).work_unit == unit

"""What holds of every neighbour of nvidia-smi: recognised once, accounted for wherever it is cut, within memory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import IMPORTERS, Labels, Reading, ReadOptions, find_runs
from gpureport.importers.protocol.column_map import read_column_map as read_map
from gpureport.testing import Recording
from tests.importers import other_tools, written_logs
from tests.importers.accounts import kept

ROWS: dict[str, tuple[str, Callable[[int], str], int]] = {
    "gpustat": ("gpustat", other_tools.gpustat_log, 2),
    "gpustat one a line": ("gpustat", lambda rows: other_tools.gpustat_log(rows, indent=None), 2),
    "nvitop": ("nvitop", other_tools.nvitop_csv, 2),
    "dmon": ("dcgm", other_tools.dmon_log, 2),
    "dmon stamped": ("dcgm", lambda rows: other_tools.dmon_log(rows, stamped=True), 2),
    "long": ("dcgm", other_tools.long_csv, 2),
    "wide": ("dcgm", other_tools.wide_csv, 2),
    "wandb": ("wandb", other_tools.wandb_csv, 2),
    "wandb lines": ("wandb", other_tools.wandb_lines, 1),
    "mapped": ("mapped", other_tools.wrapper_csv, 3),
}
"""Kind, a log of so many moments, and the rows of the series that a moment makes."""


def recording(path: Path, folder: Path, **values: object) -> Recording:
    """Return a log as it is read, with the map where only that tells."""
    if path.name.startswith("mapped"):
        mapping = folder / "map.toml"
        mapping.write_text(other_tools.MAP)
        values["map"] = read_map(mapping)
    options = ReadOptions(interval=1.0, **values)  # type: ignore[arg-type]  # options of several types
    (inputs,) = find_runs(path, kind="mapped" if options.map else None)
    return Reading(inputs, options, Labels()).recording()


def written(folder: Path, form: str, text: str | bytes) -> Path:
    """Return a file of a form."""
    path = folder / f"{form.replace(' ', '-')}.log"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("form", ROWS)
def test_every_moment_becomes_rows(tmp_path: Path, form: str) -> None:
    """A whole log is read whole: each moment a row a device, every line accounted for."""
    kind, make, rows = ROWS[form]
    found = recording(written(tmp_path, form, make(6)), tmp_path)
    assert kept(found) == 6 * rows
    assert found.run.quality.rejected == ()
    assert found.run.sources[0].kind == kind


@pytest.mark.parametrize("form", [form for form in ROWS if form != "mapped"])
def test_no_form_is_taken_for_two(form: str) -> None:
    """A log is recognised by one importer."""
    kind, make, _ = ROWS[form]
    head = make(6).encode()
    assert [each.kind for each in IMPORTERS if each.identify(head)] == [kind]


@pytest.mark.parametrize(
    "text", [written_logs.log(), "timestamp,cpu_percent\n2026-03-14T09:00:00,5\n", "{}\n", "[1, 2]\n", "a,b\n1,2\n"]
)
def test_other_files_are_none_of_them(text: str) -> None:
    """Neither a log of nvidia-smi nor any JSON or table is taken for a neighbour's."""
    kinds = {each.kind for each in IMPORTERS if each.identify(text.encode())}
    assert kinds <= {"nvidia_smi"}


@pytest.mark.parametrize("form", ROWS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_costs_the_last_moment_at_most(tmp_path: Path, form: str, data: st.DataObject) -> None:
    """A log cut at any byte keeps every moment that was whole, and accounts for the rest."""
    _, make, rows = ROWS[form]
    text = make(6)
    place = data.draw(st.integers(0, len(text)))
    ends = [len(make(moments)) for moments in range(7)]
    whole = sum(end <= place for end in ends[1:]) if form != "dmon" else None
    try:
        found = recording(written(tmp_path, form, text[:place]), tmp_path)
    except SourceError:
        assert place < ends[1] + 1
        return
    count = kept(found)
    if whole is not None:
        # a moment of several lines may be kept in part
        assert whole * rows <= count <= (whole + 1) * rows


@pytest.mark.parametrize("form", ROWS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nul_bytes_cost_their_moment_at_most(tmp_path: Path, form: str, data: st.DataObject) -> None:
    """A run of NUL bytes costs the line it stands in, and no value of another."""
    _, make, rows = ROWS[form]
    text = make(8).encode()
    place = data.draw(st.integers(text.index(b"\n") + 1, len(text) - 1))
    try:
        found = recording(written(tmp_path, form, text[:place] + b"\0" * 7 + text[place:]), tmp_path)
    except SourceError:
        return
    assert kept(found) >= 5 * rows


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("form", ROWS)
def test_encodings_change_nothing(tmp_path: Path, form: str, encoding: str) -> None:
    """A log in another encoding, with other line ends, gives the same series."""
    _, make, _ = ROWS[form]
    plain = recording(written(tmp_path, form, make(4)), tmp_path)
    coded = recording(written(tmp_path, form, make(4).replace("\n", "\r\n").encode(encoding)), tmp_path)
    assert plain.series.equals(coded.series)


@pytest.mark.parametrize("form", ROWS)
def test_a_hundred_kilobytes_are_read_whole(tmp_path: Path, form: str) -> None:
    """A log of thousands of lines loses none of them."""
    _, make, rows = ROWS[form]
    moments = max(2, 100_000 // max(1, (len(make(8)) - len(make(4))) // 4))
    assert kept(recording(written(tmp_path, form, make(moments)), tmp_path)) == moments * rows


def test_gpus_are_selected_and_the_machine_stays(tmp_path: Path) -> None:
    """--gpus leaves out GPUs, never the machine they sit in."""
    path = written(tmp_path, "wandb", other_tools.wandb_csv().replace("gpu.0.gpu", "gpu.1.gpu"))
    found = recording(path, tmp_path, gpus=(0,))
    assert [device.id for device in found.run.devices] == ["gpu:0", "host"]
    assert [(entry.reason, entry.rows) for entry in found.run.quality.rejected] == [("GPU not selected", 6)]


def test_a_second_log_of_the_machine_is_refused(tmp_path: Path) -> None:
    """A log that holds the machine's series takes no host log beside it."""
    log, host = written(tmp_path, "wandb", other_tools.wandb_csv()), tmp_path / "host.csv"
    host.write_text(f"timestamp,cpu_percent\n{other_tools.stamp(0)},5\n{other_tools.stamp(60)},5\n")
    (inputs,) = find_runs(log, [host])
    with pytest.raises(SourceError, match="holds series of the machine already; leave it out"):
        Reading(inputs, ReadOptions(), Labels()).recording()


def test_two_logs_of_one_run_keep_gpus_and_machine(tmp_path: Path) -> None:
    """Rotated logs of GPUs and their machine go on in each other."""
    rows = other_tools.wandb_csv(8).splitlines(keepends=True)
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("".join(rows[:5]))
    paths[1].write_text("".join([rows[0], *rows[5:]]))
    inputs = [find_runs(path)[0][0] for path in paths]
    found = Reading(inputs, ReadOptions(), Labels(), as_one_run=True).recording()
    assert [(device.id, len(found.rows_of(device.id))) for device in found.run.devices] == [("gpu:0", 8), ("host", 8)]
    assert found.run.timezone == "UTC"


@pytest.mark.parametrize("bad", ["[" * 100_000 + "]" * 100_000, "9" * 5_000], ids=["deep", "long"])
def test_hostile_json_is_rejected(tmp_path: Path, bad: str) -> None:
    """A document nested without end, or with a number of thousands of digits, is rejected as a whole."""
    hostile = other_tools.gpustat_document(1, indent=None).replace('"node1"', bad)
    found = recording(written(tmp_path, "gpustat", other_tools.gpustat_document(0, indent=None) + hostile), tmp_path)
    assert kept(found) == 2
    assert [(entry.reason, entry.rows) for entry in found.run.quality.rejected] == [("not JSON of this tool", 1)]


def test_numbers_that_cannot_be_are_no_values(tmp_path: Path) -> None:
    """NaN, infinity and a negative limit are cells without a value, and never 0."""
    text = other_tools.gpustat_document(0).replace("71", "NaN").replace("1024", "1e999").replace("72", "-5")
    found = recording(written(tmp_path, "gpustat", text), tmp_path)
    names = {"gpu_power_watts", "gpu_memory_used_bytes", "gpu_power_limit_watts"}
    assert names.isdisjoint(found.series.column_names)
    assert ("power.draw", "nan", 2) in [(e.column, e.reason, e.cells) for e in found.run.quality.absent_cells]

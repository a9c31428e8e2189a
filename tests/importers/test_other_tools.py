"""What holds of every neighbour of nvidia-smi: recognised once, accounted for wherever it is cut, within memory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.testing import Recording
from tests.readers.pairs import kept
from tests.support import logs

ROWS: dict[str, tuple[str, Callable[[int], str], int]] = {
    "gpustat": ("gpustat", logs.gpustat_log, 2),
    "gpustat-lines": ("gpustat", lambda rows: logs.gpustat_log(rows, indent=None), 2),
    "nvitop": ("nvitop", logs.nvitop_csv, 2),
    "dmon": ("dcgm", logs.dmon_log, 2),
    "dmon-stamped": ("dcgm", lambda rows: logs.dmon_log(rows, stamped=True), 2),
    "long": ("dcgm", logs.long_csv, 2),
    "wide": ("dcgm", logs.wide_csv, 2),
    "wandb": ("wandb", logs.wandb_csv, 2),
    "mapped": ("mapped", logs.wrapper_csv, 3),
}
"""Kind, a log of so many moments, and the rows of the series that a moment makes."""
FORMS = pytest.mark.parametrize("form", ROWS)
BOUNDED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def recording(folder: Path, form: str, text: str | bytes, **options: object) -> Recording:
    """Return a log as it is read, with the map where only that tells."""
    (path,) = logs.write(folder, ".log", **{form: text})
    if form == "mapped":
        (folder / "map.toml").write_text(logs.MAP)
        options["column_map"] = folder / "map.toml"
    return logs.read(path, interval=1.0, **options)


@FORMS
def test_every_moment_becomes_rows(tmp_path: Path, form: str) -> None:
    kind, make, rows = ROWS[form]
    found = recording(tmp_path, form, make(6))
    assert (kept(found), found.run.quality.rejected, found.run.sources[0].kind) == (6 * rows, (), kind)
    moments = max(2, 100_000 // max(1, (len(make(8)) - len(make(4))) // 4))
    assert kept(recording(tmp_path, form, make(moments))) == moments * rows
    for encoding in ("utf-8-sig", "utf-16"):
        coded = recording(tmp_path, form, make(6).replace("\n", "\r\n").encode(encoding))
        assert coded.series.equals(found.series), encoding


@FORMS
@BOUNDED
@given(data=st.data())
def test_a_cut_costs_the_last_moment_at_most(tmp_path: Path, form: str, data: st.DataObject) -> None:
    _, make, rows = ROWS[form]
    text = make(6)
    place = data.draw(st.integers(0, len(text)))
    ends = [len(make(moments)) for moments in range(1, 7)]
    whole = sum(end <= place for end in ends)
    try:
        count = kept(recording(tmp_path, form, text[:place]))
    except SourceError:
        assert place <= ends[0]
        return
    # a moment of several lines may be kept in part, and dmon's headings count for moments
    assert form == "dmon" or whole * rows <= count <= (whole + 1) * rows


@FORMS
@BOUNDED
@given(data=st.data())
def test_nul_bytes_cost_their_moment_at_most(tmp_path: Path, form: str, data: st.DataObject) -> None:
    _, make, rows = ROWS[form]
    text = make(8).encode()
    place = data.draw(st.integers(text.index(b"\n") + 1, len(text) - 1))
    try:
        found = recording(tmp_path, form, text[:place] + b"\0" * 7 + text[place:])
    except SourceError:
        return
    assert kept(found) >= 5 * rows


@pytest.mark.parametrize("text", ["timestamp,cpu_percent\n2026-03-14T09:00:00,5\n", "{}\n", "[1, 2]\n", "a,b\n1,2\n"])
def test_other_files_are_none_of_them(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError):
        logs.read_text(tmp_path, text)


def test_logs_of_a_machine_are_kept_once(tmp_path: Path) -> None:
    text = logs.wandb_csv().replace("gpu.0.gpu", "gpu.1.gpu")
    found = recording(tmp_path, "wandb", text, gpus=(0,))
    assert [device.id for device in found.run.devices] == ["gpu:0", "host"]
    assert [(entry.reason, entry.rows) for entry in found.run.quality.rejected] == [("GPU not selected", 6)]
    host = f"timestamp,cpu_percent\n{logs.iso_stamp(0)},5\n{logs.iso_stamp(60)},5\n"
    log, other = logs.write(tmp_path, wandb=logs.wandb_csv(), host=host)
    with pytest.raises(SourceError) as refused:
        logs.read(log, host=other)
    assert refused.value.where == str(other)
    rows = logs.wandb_csv(8).splitlines(keepends=True)
    logs.write(tmp_path / "run", a="".join(rows[:5]), b="".join([rows[0], *rows[5:]]))
    found = logs.read(tmp_path / "run", as_one_run=True)
    assert [(device.id, len(found.rows_of(device.id))) for device in found.run.devices] == [("gpu:0", 8), ("host", 8)]
    assert found.run.timezone == "UTC"


@pytest.mark.parametrize("bad", ["[" * 100_000 + "]" * 100_000, "9" * 5_000], ids=["deep", "long"])
def test_hostile_json_is_rejected(tmp_path: Path, bad: str) -> None:
    hostile = logs.gpustat_document(1, indent=None).replace('"node1"', bad)
    found = recording(tmp_path, "gpustat", logs.gpustat_document(0, indent=None) + hostile)
    assert (kept(found), [entry.rows for entry in found.run.quality.rejected]) == (2, [1])


def test_numbers_that_cannot_be_are_no_values(tmp_path: Path) -> None:
    """NaN, infinity and a negative limit are cells without a value, and never 0."""
    text = logs.gpustat_document(0).replace("71", "NaN").replace("1024", "1e999").replace("72", "-5")
    found = recording(tmp_path, "gpustat", text)
    names = {"gpu_power_watts", "gpu_memory_used_bytes", "gpu_power_limit_watts"}
    assert names.isdisjoint(found.series.column_names)
    assert ("power.draw", "nan", 2) in [(e.column, e.reason, e.cells) for e in found.run.quality.absent_cells]

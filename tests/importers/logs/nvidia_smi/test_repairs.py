"""Remapped rows, retired pages, and Xid lines of the kernel's log between rows."""

from pathlib import Path

import pytest

from gpureport.columns import floats, valid
from gpureport.importers.logs.nvidia_smi.forms.full_query.query_paths import field
from gpureport.testing import analyze, found
from tests.importers.written_logs import log, read_text, stamp

_FIELDS = ("remapped_rows.uncorrectable", "remapped_rows.pending", "remapped_rows.failure", "retired_pages.pending")
_XID = "[81233.123456] NVRM: Xid (PCI:0000:18:00): 79, pid=4242, GPU has fallen off the bus."


def test_repairs_are_columns(tmp_path: Path) -> None:
    """Counts and Yes or No; what is not available is null."""
    rows = [("0", "No", "No", "[N/A]"), ("1", "Yes", "No", "[N/A]"), ("1", "Yes", "No", "[N/A]")]
    lines = [f"timestamp, index, utilization.gpu [%], {', '.join(_FIELDS)}"]
    lines += [f"{stamp(second)}, 0, 97 %, {', '.join(cells)}" for second, cells in enumerate(rows)]
    run = read_text(tmp_path, "\n".join(lines) + "\n")
    assert floats(run.series.column("gpu_remapped_rows_uncorrectable_total")).tolist() == [0, 1, 1]
    assert run.series.column("gpu_remapped_rows_pending").to_pylist() == [False, True, True]
    assert run.series.column("gpu_remapped_rows_failure").to_pylist() == [False, False, False]
    assert not valid(run.series.column("gpu_retired_pages_pending")).any()
    assert [finding.severity for finding in found(analyze(run), "ecc_error")] == ["problem"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("remapped_rows/remapped_row_unc", "remapped_rows.uncorrectable"),
        ("remapped_rows/uncorrectable_error", "remapped_rows.uncorrectable"),
        ("remapped_rows/remapped_row_pending", "remapped_rows.pending"),
        ("remapped_rows/remapping_failure_occurred", "remapped_rows.failure"),
    ],
)
def test_the_query_output_names_them_otherwise(path: str, name: str) -> None:
    """As XML and as text."""
    assert field(path) == name


def test_an_xid_between_rows_is_an_event(tmp_path: Path) -> None:
    """It is counted as one, kept with its time, and found."""
    first, *rows = log(30).splitlines()
    run = read_text(tmp_path, "\n".join([first, *rows[:20], _XID, *rows[20:]]) + "\n")
    (event,) = run.run.quality.log_events
    assert (event.text, event.kind, event.line) == (_XID, "driver_message", 22)
    assert run.run.quality.events == 1
    assert run.run.quality.accounted
    assert [finding.devices for finding in found(analyze(run), "gpu_lost")] == [("gpu:0",)]

"""Records written by earlier versions are read: `earlier/` holds one without checks, and one with a check."""

from pathlib import Path
from shutil import copytree

from gpureport.nightly.history.night_history import FOLDER, History
from gpureport.testing import CheckOutcome


def test_records_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Their names are digests of their content, which a renamed field would change."""
    copytree(Path(__file__).with_name("earlier"), tmp_path / FOLDER)
    without, limited = History(tmp_path).read_all()
    for record in (without, limited):
        (run,), (gap,) = record.measured_runs, record.missing_runs
        assert (run.name, run.step, run.model, run.gpus) == ("gpu", "a", "NVIDIA A100", 8)
        assert (run.value("idle_ratio"), run.value("lost_ratio")) == (0.25, None)
        assert (gap.source, gap.reason) == ("other.csv", "no such file")
    assert without.checks == ()
    assert [(check.limit, check.outcome) for check in limited.checks] == [("idle_ratio <= 5 %", CheckOutcome.BROKEN)]

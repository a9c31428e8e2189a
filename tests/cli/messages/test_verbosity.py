"""How much is said beside the answer."""

from pathlib import Path

import pytest

from tests.cli.program import Program

LOG = str(Path(__file__).parents[3] / "sample_logs" / "healthy")


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_a_quiet_command_says_nothing_but_its_answer(gpureport: Program, tmp_path: Path, flag: str) -> None:
    """Wherever the flag stands; an error is said all the same."""
    usual = gpureport("report", LOG, "-o", str(tmp_path / "r.html"))
    assert usual.err.endswith("r.html\n")
    assert gpureport("report", LOG, "-o", str(tmp_path / "r.html"), flag).err == ""
    assert gpureport(flag, "report", "absent.csv", "-o", str(tmp_path / "r.html")).err.startswith(
        "gpureport: absent.csv: "
    )


def test_a_quiet_ingest_says_nothing_but_errors(gpureport: Program, tmp_path: Path) -> None:
    """Neither that a run was stored nor what became of its lines."""
    store = ("--store", str(tmp_path / "one"))
    quiet = gpureport("-q", "ingest", LOG, *store)
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    again = gpureport("ingest", LOG, *store, "-q")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert "  healthy  " in gpureport("runs", *store).out
    assert gpureport("-q", "ingest", "absent.csv", *store).err.startswith("gpureport: absent.csv: ")


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_a_verbose_command_accounts_for_every_line_it_read(gpureport: Program, flag: str) -> None:
    """On standard error, so that the answer stays as it was."""
    usual, verbose = gpureport("analyze", LOG), gpureport("analyze", LOG, flag)
    assert (verbose.out, usual.err) == (usual.out, "")
    assert "lines = " in verbose.err

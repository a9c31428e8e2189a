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


def test_a_quiet_ingest_says_which_run_it_is(gpureport: Program, tmp_path: Path) -> None:
    """What became of the lines is left out, the id is not."""
    usual = gpureport("ingest", LOG, "--store", str(tmp_path / "one"))
    quiet = gpureport("-q", "ingest", LOG, "--store", str(tmp_path / "two"))
    assert quiet.out.splitlines() == usual.out.splitlines()[:1]


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_a_verbose_command_accounts_for_every_line_it_read(gpureport: Program, flag: str) -> None:
    """On standard error, so that the answer stays as it was."""
    usual, verbose = gpureport("analyze", LOG), gpureport("analyze", LOG, flag)
    assert (verbose.out, usual.err) == (usual.out, "")
    assert "lines = " in verbose.err

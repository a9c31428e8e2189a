"""`--anonymise`: nothing that names people or machines is shown."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.written_logs import log


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_no_format_shows_a_name(gpureport: Program, tmp_path: Path, command: str) -> None:
    """Text, JSON and files of an anonymised report hold no path and no host."""
    folder = tmp_path / "secret-host"
    folder.mkdir()
    (folder / "gpu.csv").write_text(log(60))
    options = ["-o", "out.html", "-o", "out.md", "-o", "out.json"] if command == "report" else ["--format", "json"]
    out = gpureport(command, str(folder), "--tag", "host=secret-host", "--anonymise", *options)
    assert out.code == 0
    texts = [out.out, *(path.read_text() for path in tmp_path.glob("out.*"))]
    assert not any("secret-host" in text for text in texts)
    if command == "analyze":
        assert json.loads(out.out)["runs"][0]["run"]["sources"][0]["locator"] == "source-1.csv"


def test_names_that_tell_logs_apart_are_no_way_round_it(gpureport: Program, tmp_path: Path) -> None:
    """Names made of folders are replaced, whether they are made now or were when the logs were stored."""
    logs = [tmp_path / folder / "job" / "gpu.csv" for folder in ("secret-a", "secret-b")]
    for seconds, path in enumerate(logs, 60):
        path.parent.mkdir(parents=True)
        path.write_text(log(seconds))
    named = [str(path.relative_to(tmp_path)) for path in logs]
    fresh = gpureport("analyze", *named, "--anonymise")
    assert gpureport("ingest", *named).code == 0
    stored = gpureport("analyze", *(line.split()[0] for line in gpureport("runs").out.splitlines()), "--anonymise")
    assert [fresh.code, stored.code] == [0, 0]
    assert "secret" not in fresh.out + stored.out


def test_ingest_refuses_it(gpureport: Program, tmp_path: Path) -> None:
    """What is stored is what was read."""
    (tmp_path / "gpu.csv").write_text(log(30))
    outcome = gpureport("ingest", "gpu.csv", "--anonymise")
    assert (outcome.code, "not what is stored" in outcome.err) == (2, True)

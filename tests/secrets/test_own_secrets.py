"""`[secrets]` of gpureport.toml: every command replaces what it names, wherever it works."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import gpureport as api
from gpureport.cli import main
from tests.secrets.planted_secrets import HIDDEN, Exits, Planter
from tests.support.logs import HEADER, log, row
from tests.support.program import Program

_SETTINGS = '[secrets]\nnames = ["vault_id", "*_pin"]\npatterns = ["corp-"]\n'


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    """Leave no secrets in use: every call of the program begins without those of the call before."""
    yield
    with suppress(SystemExit):
        main(["--version"])


@pytest.mark.slow
def test_no_exit_shows_one(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    for number in range(3):
        (tmp_path / f"log{number}.csv").write_text(log(60 + number))
    labels = ["--param", f"vault_id={planter.plant('name')}", "--tag", f"cfg.door-pin={planter.plant('last part')}"]
    labels += ["--tag", f"note=see corp-{planter.plant('pattern')}", "--step", f"step corp-{planter.plant('step')}"]
    sources = [f"log{number}.csv" for number in range(3)]
    # before the settings name them
    assert gpureport("ingest", *sources, *labels).code == 0
    exits.sources = set(tmp_path.rglob("*"))
    (tmp_path / "gpureport.toml").write_text(_SETTINGS)
    for command in (
        ("analyze", *sources, *labels, "--format", "json"),
        ("report", *sources, *labels, "-o", "r.html", "-o", "r.md", "-o", "r.json", "-o", "r.pdf"),
        ("fleet", "-o", "f.html", "-o", "f.json"),
        ("runs", "list"),
        ("ingest", "--force", *sources, *labels),
        ("runs", "list", "--format", "json"),
        ("runs", "show", str(next((tmp_path / ".gpureport/runs").glob("*")).name)),
        ("nightly", "log0.csv", *labels, "--site", "site", "--junit", "n.xml", "--summary", "n.md"),
    ):
        assert exits.run(gpureport, *command).code == 0, command
    for path in (tmp_path / ".gpureport/runs").glob("*/run.json"):
        exits.sources.discard(path)
    exits.collect_files()
    assert any(HIDDEN.encode() in content for contents in exits.texts.values() for content in contents)
    assert exits.find_leaks(planter) == []


def test_what_was_stored_before_is_hidden_at_once(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    metrics = f"corp-{planter.plant('metric')},corp-{planter.plant('other metric')}"
    message = f"May  5 10:01:40 node kernel: NVRM: Xid (PCI:0000:01:00): 31, name=corp-{planter.plant('driver')}, x"
    for number in (1, 2):
        cells = [f"{row(second)}, corp-{planter.plant('cell')}" for second in range(60 + number)]
        (tmp_path / f"log{number}.csv").write_text("\n".join([f"{HEADER}, badge", *cells, message, ""]))
        values = [f"2026/03/14 09:00:{second:02d},0.{number},0.2\n" for second in range(60)]
        (tmp_path / f"train{number}.csv").write_text(f"time,{metrics}\n{''.join(values)}")
        texts = {name: f"corp-{planter.plant(name)}" for name in ("step", "name", "label")}
        labels = ["--param", f"vault_id={planter.plant('param')}", "--tag", f"note=corp-{planter.plant('tag')}"]
        labels += ["--work", f"1000:corp-{planter.plant('unit')}", "--training", f"train{number}.csv"]
        labels += ["--step", f"{number} {texts['step']}", "--name", f"r{number} {texts['name']}"]
        assert gpureport("ingest", f"log{number}.csv", *labels).code == 0
        night = ("--label", texts["label"], "--site", "site")
        assert gpureport("nightly", f"log{number}.csv", *labels, *night).code == 0
    shutil.rmtree(tmp_path / "site")
    ids = sorted(path.name for path in (tmp_path / ".gpureport/runs").iterdir())
    assert gpureport("baseline", "set", "main", ids[0]).code == 0
    (tmp_path / "gpureport.toml").write_text(_SETTINGS)
    exits.sources = set(tmp_path.rglob("*"))
    for command in (
        *(("runs", "list", "--format", form) for form in ("text", "json", "csv")),
        *(("runs", "show", each) for each in ids),
        ("runs", "export", ids[0], "-o", "series.parquet"),
        ("analyze", *ids, "--format", "json"),
        ("compare", *ids, "--format", "json"),
        ("report", *ids, "-o", "r.html", "-o", "r.md", "-o", "r.json"),
        ("fleet", "-o", "f.html", "-o", "f.json"),
        ("baseline", "list"),
        ("check", ids[1], "--baseline", "main", "--fail-on", "problem", "--junit", "j.xml", "--format", "json"),
        ("nightly", "log1.csv", "--site", "site", "--junit", "n.xml", "--summary", "n.md"),
    ):
        assert exits.run(gpureport, *command).code in {0, 1}, exits.outcomes[-1]
    assert {"series.parquet", "r.html", "f.html", "n.md"} <= exits.collect_files()
    assert exits.find_leaks(planter) == []


@pytest.mark.parametrize("command", [("runs",), ("ingest", "log.csv"), ("analyze", "log.csv")])
def test_without_readable_settings_no_command_begins(
    gpureport: Program, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "gpureport.toml").write_text('[secrets]\npatterns = ["(a+)+"]\n')
    refused = gpureport(*command)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert refused.err.startswith("gpureport: gpureport.toml:2: text 1 of patterns cannot be used: it holds")
    assert gpureport(*command, "--help").code == 0


@pytest.mark.parametrize("name", ["secret", "Secrets", "secerts"])
def test_a_misspelt_section_of_secrets_is_refused(gpureport: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "gpureport.toml").write_text(f'\n[{name}]\nnames = ["vault_id"]\n')
    refused = gpureport("runs")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"gpureport: gpureport.toml:2: unknown section [{name}]; known are")


def test_a_mistake_elsewhere_stops_only_who_reads_it(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "gpureport.toml").write_text(f"{_SETTINGS}[[polcy]]\n")
    assert gpureport().code == 0
    assert gpureport("ingest", "log.csv", "--param", "vault_id=4711").code == 0
    assert "4711" not in gpureport("runs", "show", "log").out
    refused = gpureport("check", "log.csv")
    assert (refused.code, refused.err.partition(";")[0]) == (2, "gpureport: gpureport.toml:4: unknown section [polcy]")
    (tmp_path / "gpureport.toml").write_text("not TOML")
    monkeypatch.setenv("_GPUREPORT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "gpureport ana")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert gpureport().out == "plain,analyze\n"


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd")
@pytest.mark.parametrize("command", ["check", "analyze", "explain"])
def test_settings_of_a_pipe_are_read_once(gpureport: Program, tmp_path: Path, command: str) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    shown = []
    arguments = {
        "check": ["log.csv", "--param", "vault_id=4711"],
        "analyze": ["log.csv", "--param", "vault_id=4711", "--format", "json"],
        "explain": ["idle_gap"],
    }[command]
    text = f'{_SETTINGS}[rules.idle_gap]\nshortest = 77\n[[policy]]\nlimit = "gpu_utilization_ratio p50 >= 101%"\n'
    (tmp_path / "own.toml").write_text(text)
    for place in ("own.toml", None):
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        try:
            shown.append(gpureport(command, *arguments, "--config", place or f"/dev/fd/{reader}"))
        finally:
            os.close(reader)
    assert shown[0] == shown[1]
    assert shown[0].code == (1 if command == "check" else 0)
    assert "4711" not in shown[1].out


def test_settings_of_a_call_and_of_a_file_here(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "gpureport.toml").write_text("not TOML")
    (tmp_path / "own.toml").write_text(_SETTINGS)
    for option in (["--config", "own.toml"], ["--config=own.toml"]):
        shown = gpureport("analyze", "log.csv", "--param", "vault_id=4711", "--format", "json", *option)
        assert (shown.code, "4711" in shown.out) == (0, False)
    (tmp_path / "log.csv").write_text(log(60))
    (recording,) = api.read(tmp_path / "log.csv", labels={"params": {"vault_id": "4711"}})
    found = api.analyze(recording, settings={"secrets": {"names": ["vault_id"]}})
    assert dict(found.recording.run.params) == {"vault_id": HIDDEN}


def test_settings_of_a_call_hold_for_extra_columns(tmp_path: Path) -> None:
    rows = [row(second) for second in range(60)]
    text = "\n".join([f"{HEADER}, badge", *(f"{each}, corp-4711" for each in rows), ""])
    (tmp_path / "log.csv").write_text(text)
    (recording,) = api.read(tmp_path / "log.csv")
    assert set(recording.series.column("extra_badge").to_pylist()) == {"corp-4711"}
    found = api.analyze(recording, settings={"secrets": {"patterns": ["corp-"]}})
    assert set(found.recording.series.column("extra_badge").to_pylist()) == {HIDDEN}

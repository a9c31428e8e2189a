"""What `--anonymise` and `[secrets]` of gpureport.toml hide, wherever a command works."""

import json
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
from tests.support.pdf_reading import needs_poppler, text
from tests.support.program import Program
from tests.support.tables import read_table, words_of


def test_names_that_tell_logs_apart_are_no_way_round_it(gpureport: Program, tmp_path: Path) -> None:
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


_MACHINES = read_table(Path(__file__).with_name("machines.tsv"))
_HIDDEN = [word for _, _, *words in _MACHINES for word in words]


@needs_poppler
@pytest.mark.parametrize("kind", ["param", "tag"])
def test_no_format_shows_a_machine(gpureport: Program, tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret-host").mkdir()
    two = ["secret-host/gpu1.csv", "secret-host/gpu2.csv"]
    for seconds, path in enumerate(two, 60):
        (tmp_path / path).write_text(log(seconds) + "clara01: dora9 lost fe80::a1b2:c3d4\n")
    labels = [word for name, value, *_ in _MACHINES for word in (f"--{kind}", f"{name}={value}")]
    labels += ["--tag", "where=see clara02 and emil5", "--anonymise"]
    steps = ["--step", "before, on clara01", "--step", "after, on dora9"]
    files = [f"out.{end}" for end in ("html", "md", "json", "pdf", "txt")]
    commands = (
        ["report", *two, *steps, *labels, *(word for name in files for word in ("-o", name))],
        ["analyze", *two, *labels, "--detail", "full"],
        ["analyze", two[0], *labels, "--format", "json"],
        ["compare", *two, *steps, *labels],
        ["compare", *two, *steps, *labels, "--format", "json"],
        ["check", *two, *labels, "--fail-on", "idle <= 5%", "--junit", "j.xml", "--summary", "s.md"],
        ["check", *two, *labels, "--fail-on", "idle <= 5%", "--format", "json"],
    )
    done = [gpureport("-v", *command) for command in commands]
    assert [each.err for each in done if each.code not in {0, 1, 4}] == []
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.*") if path.suffix != ".pdf"}
    texts |= {"pdf": text(tmp_path / "out.pdf")} | {str(number): each.out for number, each in enumerate(done)}
    assert [(name, word) for name, shown in texts.items() for word in _HIDDEN if word in shown] == []
    assert {"out.html", "j.xml", "s.md"} <= texts.keys()
    assert json.loads(done[2].out)["runs"][0]["run"]["sources"][0]["locator"] == "source-1.csv"
    # what hides them is shown in their place, so the labels are there
    assert all("<address>" in texts[name] for name in ("out.json", "pdf", "1", "2", "4"))
    assert "&lt;address&gt;" in texts["out.html"]


def test_hidden_steps_stay_as_many_as_they_were(gpureport: Program, tmp_path: Path) -> None:
    for seconds in (61, 62):
        (tmp_path / f"log{seconds}.csv").write_text(log(seconds))
    for number, (first, second, grouping, *shown) in enumerate(
        read_table(Path(__file__).with_name("hidden_steps.tsv"))
    ):
        store = ("--store", f"store{number}")
        for seconds, labels in ((61, first), (62, second)):
            assert gpureport("ingest", f"log{seconds}.csv", *words_of(labels), *store).code == 0
        command = ("compare", "log61", "log62", *grouping.split(), *store)
        out = gpureport(*command, "--anonymise", "--format", "json")
        assert (out.code, out.err) == (0, "")
        assert [step["label"] for step in json.loads(out.out)["steps"]] == shown


def test_a_host_has_one_number_in_all_of_an_output(gpureport: Program, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"gpu{number}.csv").write_text(log(60 + number))
    for number, host in ((1, "clara01"), (2, "dora9.cluster.local"), (3, "clara01.cluster.local")):
        assert gpureport("ingest", f"gpu{number}.csv", "--tag", f"host={host}", "--name", f"run{number}").code == 0
    (tmp_path / "steps.toml").write_text(
        '[[step]]\nlabel = "on clara01"\nruns = ["run1"]\n[[step]]\nlabel = "on dora9"\nruns = ["run2", "run3"]\n'
    )
    out = gpureport("compare", "--steps", "steps.toml", "--anonymise", "--format", "json")
    assert (out.code, out.err) == (0, "")
    assert [step["label"] for step in json.loads(out.out)["steps"]] == ["on host-1", "on host-2"]
    shown = gpureport("analyze", "run1", "run2", "run3", "--anonymise", "--format", "json")
    runs = [dict(one["run"]["tags"]) for one in json.loads(shown.out)["runs"]]
    assert [tags["host"] for tags in runs] == ["host-1", "host-2", "host-1"]


_SETTINGS = '[secrets]\nnames = ["vault_id", "*_pin"]\npatterns = ["corp-"]\n'


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    """Leave no secrets in use: every call of the program begins without those of the call before."""
    yield
    with suppress(SystemExit):
        main(["--version"])


@pytest.mark.slow
def test_what_is_given_and_what_was_stored_before_is_hidden_at_once(gpureport: Program, tmp_path: Path) -> None:
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
        labels += ["--tag", f"cfg.door-pin={planter.plant('last part of a name')}"]
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
    exits.run_all(gpureport, "stored before", first=ids[0], second=ids[1])
    for words in (("analyze", "--format", "json"), ("report", "-o", "r.pdf"), ("ingest", "--store", "fresh")):
        assert exits.run(gpureport, words[0], "log2.csv", *labels, *words[1:]).code == 0, words
    assert {"series.parquet", "r.html", "r.pdf", "f.html", "n.md", "run.json"} <= exits.collect_files()
    assert any(HIDDEN.encode() in content for contents in exits.texts.values() for content in contents)
    assert exits.find_leaks(planter) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('\n[secrets]\npatterns = ["(a+)+"]\n', ":3: string 1 in patterns cannot be used: it contains"),
        *((f"\n[{n}]\n", f":2: unknown section [{n}]; known sections are") for n in ("secret", "Secrets", "secerts")),
    ],
)
def test_without_readable_secrets_no_command_begins(gpureport: Program, tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "gpureport.toml").write_text(text)
    for command in (("runs",), ("ingest", "log.csv"), ("analyze", "log.csv")):
        refused = gpureport(*command)
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
        assert refused.err.startswith(f"gpureport: gpureport.toml{error}")
        assert gpureport(*command, "--help").code == 0


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
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check log.csv --param vault_id=4711", 1),
        ("analyze log.csv --param vault_id=4711 --format json", 0),
        ("explain idle_gap", 0),
    ],
)
def test_settings_of_a_pipe_are_read_once(gpureport: Program, tmp_path: Path, command: str, code: int) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    shown = []
    text = f'{_SETTINGS}[rules.idle_gap]\nshortest = 77\n[[policy]]\nlimit = "gpu_utilization_ratio p50 >= 101%"\n'
    (tmp_path / "own.toml").write_text(text)
    for place in ("own.toml", None):
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        try:
            shown.append(gpureport(*command.split(), "--config", place or f"/dev/fd/{reader}"))
        finally:
            os.close(reader)
    assert shown[0] == shown[1]
    assert shown[0].code == code
    assert "4711" not in shown[1].out


def test_settings_of_a_call_and_of_a_file_here(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "gpureport.toml").write_text("not TOML")
    (tmp_path / "own.toml").write_text(_SETTINGS)
    for option in (["--config", "own.toml"], ["--config=own.toml"]):
        shown = gpureport("analyze", "log.csv", "--param", "vault_id=4711", "--format", "json", *option)
        assert (shown.code, "4711" in shown.out) == (0, False)


def test_settings_of_a_call_hold_for_params_and_extra_columns(tmp_path: Path) -> None:
    text = "\n".join([f"{HEADER}, badge", *(f"{row(second)}, corp-4711" for second in range(60)), ""])
    (tmp_path / "log.csv").write_text(text)
    (recording,) = api.read(tmp_path / "log.csv", labels={"params": {"vault_id": "4711"}})
    assert set(recording.series.column("extra_badge").to_pylist()) == {"corp-4711"}
    found = api.analyze(recording, settings={"secrets": {"names": ["vault_id"], "patterns": ["corp-"]}}).recording
    assert dict(found.run.params) == {"vault_id": HIDDEN}
    assert set(found.series.column("extra_badge").to_pylist()) == {HIDDEN}

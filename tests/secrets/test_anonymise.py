"""`--anonymise`: nothing that names people or machines is shown."""

import json
from pathlib import Path

import pytest

from tests.support.logs import log
from tests.support.pdf_reading import needs_poppler, text
from tests.support.program import Program


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_no_format_shows_a_name(gpureport: Program, tmp_path: Path, command: str) -> None:
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
    (tmp_path / "gpu.csv").write_text(log(30))
    outcome = gpureport("ingest", "gpu.csv", "--anonymise")
    assert (outcome.code, "not what is stored" in outcome.err) == (2, True)


_NAMED = {
    "MASTER_ADDR": "gpu-anna-7",
    "rdzv_endpoint": "rdzv-berta:29500",
    "SLURM_JOB_NODELIST": "clara[01-02]",
    "cmd": "torchrun --rdzv_endpoint=dora9:29500 --master_addr emil5 train.py",
    "note": "fe80::a1b2:c3d4 talks to aa:bb:cc:dd:ee:1f, 10.77.1.2 and 2001:db8::77:1",
    "tracking": "http://frieda-3:5000/x",
    "peer": "gustav.cluster.local",
    "metrics/hugo1.cluster.local": "3",
    "rank0": "--master_addr=inge7 train.py",
}
_HIDDEN = (
    *("anna", "berta", "clara", "dora9", "emil5", "fe80", "a1b2", "aa:bb", "ee:1f", "10.77", "2001:db8", "frieda"),
    *("gustav", "hugo1", "inge"),
)


@needs_poppler
@pytest.mark.parametrize("kind", ["param", "tag"])
def test_no_format_shows_a_machine(gpureport: Program, tmp_path: Path, kind: str) -> None:
    for number in (1, 2):
        (tmp_path / f"gpu{number}.csv").write_text(log(60 + number) + "clara01: dora9 lost fe80::a1b2:c3d4\n")
    labels = [word for name, value in _NAMED.items() for word in (f"--{kind}", f"{name}={value}")]
    labels += ["--tag", "where=see clara02 and emil5", "--anonymise"]
    steps = ["--step", "before, on clara01", "--step", "after, on dora9"]
    files = [f"out.{end}" for end in ("html", "md", "json", "pdf", "txt")]
    outputs = [word for name in files for word in ("-o", name)]
    two = ["gpu1.csv", "gpu2.csv"]
    commands = (
        ["report", *two, *steps, *labels, *outputs],
        ["analyze", *two, *labels, "--detail", "full"],
        ["analyze", "gpu1.csv", *labels, "--format", "json"],
        ["compare", *two, *steps, *labels],
        ["compare", *two, *steps, *labels, "--format", "json"],
        ["check", *two, *labels, "--fail-on", "idle <= 5%", "--junit", "j.xml", "--summary", "s.md"],
        ["check", *two, *labels, "--fail-on", "idle <= 5%", "--format", "json"],
    )
    done = [gpureport("-v", *command) for command in commands]
    wrong = [each.err for each in done if each.code not in {0, 1, 4}]
    assert wrong == []
    texts = {path.name: path.read_text() for path in tmp_path.glob("*") if path.suffix not in {".pdf", ".csv"}}
    texts |= {"pdf": text(tmp_path / "out.pdf")} | {str(number): each.out for number, each in enumerate(done)}
    assert [(name, word) for name, shown in texts.items() for word in _HIDDEN if word in shown] == []
    assert {"out.html", "j.xml", "s.md"} <= texts.keys()
    # what hides them is shown in their place, so the labels are there
    assert all("<address>" in texts[name] for name in ("out.json", "pdf", "1", "2", "4"))
    assert "&lt;address&gt;" in texts["out.html"]


@pytest.mark.parametrize(
    ("labels", "hosts"),
    [
        (["--step", "on gpu-a.example.com", "--step", "on gpu-b.example.com"], ["on host-1", "on host-2"]),
        (["--step", "on clara01", "--step", "on dora9", "--tag", "hosts=clara01,dora9"], ["on host-1", "on host-2"]),
        (["--step", "on 10.1.2.3", "--step", "on 10.1.2.4"], ["on <address>", "on <address> 2"]),
        (["--step", "/data/anna/x", "--step", "/data/berta/x"], ["<path>", "<path> 2"]),
    ],
)
def test_steps_stay_as_many_as_they_were(
    gpureport: Program, tmp_path: Path, labels: list[str], hosts: list[str]
) -> None:
    for number in (1, 2):
        (tmp_path / f"gpu{number}.csv").write_text(log(60 + number))
    out = gpureport("compare", "gpu1.csv", "gpu2.csv", *labels, "--anonymise", "--format", "json")
    assert (out.code, out.err) == (0, "")
    assert [step["label"] for step in json.loads(out.out)["steps"]] == hosts


@pytest.mark.parametrize(
    ("key", "values", "shown"),
    [
        ("hostname", ("gpu-b", "gpu-a"), ["host-1", "host-2"]),
        ("user", ("anna", "berta"), ["<name>", "<name> 2"]),
        ("data", ("/scratch/anna/x", "/scratch/berta/x"), ["<path>", "<path> 2"]),
    ],
)
def test_groups_of_hidden_values_stay_as_many_as_they_were(
    gpureport: Program, tmp_path: Path, key: str, values: tuple[str, str], shown: list[str]
) -> None:
    for number, value in enumerate(values, 1):
        (tmp_path / f"gpu{number}.csv").write_text(log(60 + number))
        assert gpureport("ingest", f"gpu{number}.csv", "--tag", f"{key}={value}", "--name", f"run{number}").code == 0
    out = gpureport("compare", "run1", "run2", "--by", f"tag:{key}", "--anonymise", "--format", "json")
    assert (out.code, out.err) == (0, "")
    assert [step["label"] for step in json.loads(out.out)["steps"]] == [f"{key}={each}" for each in shown]


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

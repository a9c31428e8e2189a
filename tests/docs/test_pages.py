"""README, guides and made pages hold what they say: commands and examples run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

import gpureport
from gpureport import __version__
from gpureport.cli.main import COMMANDS
from gpureport.testing import Recording, check, recording
from tests.docs.page_runner import ROOT, install, install_programs
from tests.importers.trackers.mlflow.stores import HARDWARE, Made, database, folder, monitored, run_id
from tests.places.s3_server import s3_server
from tests.support.logs import log, read

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "sample_logs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def named(run: Recording, name: str) -> Recording:
    return replace(run, run=replace(run.run, id=name, name=name))


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link]
    islands = sorted(
        page.relative_to(ROOT).as_posix() for page in PAGES if page not in seen and page.is_relative_to(ROOT / "docs")
    )
    assert islands == []


@pytest.mark.parametrize("place", range(3))
def test_python_examples_run(place: int, tmp_path: Path) -> None:
    examples = blocks(ROOT / "docs" / "reference" / "python.md", "python")
    assert len(examples) == 3
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    command = [sys.executable, "-W", "error", "-c", examples[place]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [block for _, block in BLOCK.findall(text)] + re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    named = {word for part in code for word in re.findall(r"(?:^|/)gpureport ([a-z]+)", part, re.MULTILINE)}
    added = re.findall(r'^\+    "([a-z]+)": ', text, re.MULTILINE)
    assert named <= {*COMMANDS, *added}


def test_policy_example_is_accepted() -> None:
    guide = ROOT / "docs" / "how-to" / "gates.md"
    *policies, baseline = blocks(guide, "toml")
    assert tomllib.loads(baseline)["baseline"] == {"name": "main"}
    run = recording(util=[90.0] * 600)
    for example, rules in zip(policies, (2, 3), strict=True):
        assert len(check(tomllib.loads(example), run)) == rules
    listed = re.findall(r"^- (`.*?`):", guide.read_text(encoding="utf-8"), re.MULTILINE)
    limits = [text for each in listed for text in re.findall(r"`([^`]+)`", each) if " " in text or text == "problem"]
    named = [text for text in limits if not text.startswith("--")]
    assert len(named) >= 15
    assert len(check(named, run)) == len(named)


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_gates_page_states_the_intervals_of_several_runs(runs: int) -> None:
    guide = (ROOT / "docs" / "how-to" / "gates.md").read_text(encoding="utf-8")
    places = np.arange(runs) - (runs - 1) / 2
    means = 70.0 + places / places.std(ddof=1)
    baseline = [named(recording(util=np.full(1800, mean)), f"old {place}") for place, mean in enumerate(means)]
    checked = named(recording(util=np.full(1800, 70.0)), "new")
    (change,) = check("change gpu_utilization_ratio >= -50 points", checked, baseline=baseline)
    assert change.bounds is not None
    width = 50 * (change.bounds[1] - change.bounds[0])
    assert f"| {runs} | ±{width:.1f} | {5 / width:.1f} points |" in guide


def test_readme_settings_and_citation_hold() -> None:
    _, _, own = blocks(ROOT / "README.md", "sh")
    assert [line.split()[1] for line in own.splitlines()] == ["record", "analyze", "compare"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"gpureport {command}" in text for command in ("demo", "analyze gpu.csv", "report"))
    (example,) = blocks(ROOT / "docs" / "explanation" / "thresholds.md", "toml")
    (run,) = gpureport.read(str(ROOT / "sample_logs" / "healthy"))
    analysed = gpureport.analyze(run, settings=tomllib.loads(example))
    assert analysed.run == run.run
    counts = re.findall(r"of (\d+) (?:\[checks|things)", "".join(page.read_text(encoding="utf-8") for page in PAGES))
    assert (len(counts), {*counts}) == (2, {str(len(analysed.kinds))})
    found = yaml.safe_load((ROOT / "docs" / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    assert (found["cff-version"], found["version"]) == ("1.2.0", __version__)
    assert all(set(author) & {"name", "family-names"} for author in found["authors"])


@pytest.mark.parametrize(
    "part", ["--check", *(pytest.param(part, marks=pytest.mark.slow) for part in ("--pictures", "--notebook"))]
)
def test_made_pages_are_up_to_date(part: str) -> None:
    words = [sys.executable, "docs/site/make_pages.py", "--check", part]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("place", range(2))
def test_callbacks_log_rate_and_waits(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6,400 samples in 105 s: each 32 wait for 0.2 s and take 0.3 s, and saving takes 5 s."""
    code = blocks(ROOT / "docs" / "how-to" / "training-logs.md", "python")[place]
    ((library, base),) = re.findall(r"from (\S+) import (\w*Callback)", code)
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(**{base: object}))
    names, now = dict[str, Any](), datetime(2026, 3, 14, 9).timestamp()
    exec(code, names)  # noqa: S102 - code of this project
    names["time"] = SimpleNamespace(time=lambda: now)
    callback = names["TrainingLog"](tmp_path / "training.jsonl", *[16] * (place == 0))
    job = Mock(world_size=2, train_batch_size=8, gradient_accumulation_steps=2)
    hooks = [getattr(callback, name) for name in re.findall(r"def (on_\w+)", code)]
    hooks[0](job)
    for job.global_step in range(1, 201):
        for hook, seconds in zip(hooks[1:3], (0.2, 0.3), strict=True):
            now += seconds
            hook(job, job, {"loss": 1.5})
        if job.global_step % 10 == 0 and place == 1:
            callback.on_log(job, job, None, logs={"loss": 1.5})
        for seconds in (5, 0) if job.global_step == 195 else ():
            getattr(callback, ("on_save_checkpoint", "on_save")[place])(job)
            now += seconds
    (tmp_path / "gpu.csv").write_text(log(120))
    found = check(["training_rate_hertz >= 60 /s", 'training "data_wait_ratio" <= 0.5'], read(tmp_path))
    assert [each.value for each in found] == pytest.approx([6400 / 105, 0.4], rel=0.025)


RECORD = ROOT / "docs" / "how-to" / "record.md"


def run(words: Sequence[str], machine: Path, folder: Path | None = None, **variables: str) -> None:
    """Run a command in a folder, with the programs of a machine."""
    environment = install_programs(machine) | variables
    install("docker", machine / "bin" / "docker")
    done = subprocess.run(words, cwd=folder or machine, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def is_complete(recorded: Path) -> bool:
    return bool(json.loads((recorded / "run.json").read_text())["exit_code"] == 0)


@pytest.mark.slow
def test_first_commands_record_and_report(tmp_path: Path) -> None:
    (change,) = blocks(RECORD, "bash")
    for command in (blocks(RECORD, "sh")[0], change):
        run(["sh", "-e", "-c", command], tmp_path)
    assert [is_complete(tmp_path / "runs" / name) for name in ("base", "more-workers")] == [True] * 2
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 2], ids=["outside", "inside"])
def test_container_is_recorded(place: int, tmp_path: Path) -> None:
    command = blocks(RECORD, "sh")[place].replace(" /runs/", f" {tmp_path}/runs/")
    run(["sh", "-e", "-c", command], tmp_path)
    assert is_complete(tmp_path / "runs" / "base")


@pytest.mark.slow
def test_pods_are_one_run(tmp_path: Path) -> None:
    (text,) = blocks(RECORD, "yaml")
    job: Any = yaml.safe_load(text)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (variable,) = container["env"]
    (mount,) = container["volumeMounts"]
    assert [mount["name"]] == [volume["name"] for volume in pod["volumes"]]
    output = container["command"][3]
    assert output == f"{mount['mountPath']}/$({variable['name']})"
    for name in ("train-0", "train-1"):
        place = output.replace(f"$({variable['name']})", name).replace("/runs", str(tmp_path / "runs" / "812"))
        run([place if word == output else word for word in container["command"]], tmp_path)
    run(["sh", "-e", "-c", blocks(RECORD, "sh")[3]], tmp_path)
    assert (tmp_path / "report.html").is_file()


def test_pages_print_one_command() -> None:
    pattern = re.compile(r"--query-gpu=([\w.,]*\w)(?=\s)")
    (fields,) = pattern.findall(RECORD.read_text(encoding="utf-8"))
    assert fields.count(",") >= 30
    others = {field for page in PAGES for field in pattern.findall(page.read_text(encoding="utf-8"))} - {fields}
    assert others == set()


PUBLISH = ROOT / "docs" / "how-to" / "publish.md"
RUN = Made(id=run_id(1), name="baseline", series=monitored(range(0, 100_000, 10_000)))
USES = {number: HARDWARE | {"gpu_0_utilization_percentage": 30.0 * number} for number in (2, 3)}
TICKS = range(0, 1_200_000, 10_000)
STEPS = [Made(id=run_id(each), name=f"step {each}", series=monitored(TICKS, USES[each])) for each in USES]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "gpu.csv").write_text(log(120))
    database(tmp_path / "mlflow.db", [RUN])
    folder(tmp_path / "mlruns", STEPS)
    return tmp_path


def run_lines(machine: Path, command: str, folder: Path | None = None) -> None:
    install_programs(machine)
    for name in ("aws", "gcloud", "az", "rclone"):
        install("cloud", machine / "bin" / name)
    run(["bash", "-e", "-c", command], machine, folder, CLOUD=str(machine / "cloud"), BUCKET="nightly")


@pytest.mark.slow
def test_folder_and_mlflow(machine: Path) -> None:
    for command in blocks(PUBLISH, "sh"):
        run_lines(machine, command)
    written = (machine / "report.html").read_bytes()
    assert (machine / "reports" / "report.html").read_bytes() == written
    (published,) = (machine / "mlruns").rglob("gpureport/report.html")
    assert RUN.id in published.parts
    assert published.read_bytes() == written
    for step in STEPS:
        (home,) = (machine / "mlruns").glob(f"*/{step.id}")
        assert (home / "tags" / "gpureport.step").read_text() == step.name
        assert (home / "artifacts" / "gpureport" / "steps.html").read_bytes() == (machine / "steps.html").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("aws") is None, reason="needs the program aws on the path")
def test_bucket_of_a_real_client(tmp_path: Path) -> None:
    """The client of S3 takes the line of the page, and the report comes back as the same bytes."""
    (tmp_path / "report.html").write_bytes(b"<!doctype html>\xc3\xa4")
    command = blocks(PUBLISH, "bash")[0].splitlines()[0]
    assert command.startswith("aws s3 cp ")
    put, got = command, 'aws s3 cp "s3://$BUCKET/gpu/report.html" back.html'
    there = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_DEFAULT_REGION": "us-east-1"}
    there |= {"BUCKET": "nightly", "PATH": os.environ["PATH"]}
    words = ["bash", "-e", "-c", f'aws s3 mb "s3://$BUCKET"\n{put}\n{got}']
    with s3_server() as port:
        there["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        done = subprocess.run(words, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back.html").read_bytes() == (tmp_path / "report.html").read_bytes()


@pytest.mark.slow
def test_bucket(machine: Path) -> None:
    report, nights = blocks(PUBLISH, "bash")
    run_lines(machine, blocks(PUBLISH, "sh")[0])
    for command in report.splitlines():
        run_lines(machine, command)
        (put,) = (path for path in (machine / "cloud").rglob("gpu/report.html") if "nightly" in path.parts)
        assert put.read_bytes() == (machine / "report.html").read_bytes()
        put.unlink()
    for number, name in enumerate(("one", "two")):
        (machine / name).mkdir()
        (machine / name / "gpu.csv").write_text(log(120 + number))
        dated = nights.replace("--site site", f"--site site --date 2026-03-1{number}")
        # the first night has nothing to fetch
        run_lines(machine, dated if number else dated.partition("\n")[2], machine / name)
    kept = sorted(path.name[:10] for path in (machine / "cloud" / "nightly" / "history").glob("*.parquet"))
    assert kept == ["2026-03-10", "2026-03-11"]
    assert len(list((machine / "cloud" / "nightly" / "site" / "nights").glob("*.html"))) == 2

"""What README and docs say holds: commands and examples run. Their links are checked where the site is built."""

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

import gpureport
from gpureport import __version__
from gpureport.cli.main import COMMANDS
from gpureport.errors import GpureportError
from gpureport.testing import Recording, check, recording

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
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


def test_readme_names_the_commands_of_a_first_hour() -> None:
    _, _, own = blocks(ROOT / "README.md", "sh")
    assert [line.split()[1] for line in own.splitlines()] == ["record", "analyze", "compare"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"gpureport {command}" in text for command in ("demo", "analyze gpu.csv", "report"))


@pytest.mark.parametrize("place", range(3))
def test_python_examples_run(place: int, tmp_path: Path) -> None:
    examples = blocks(ROOT / "docs" / "reference" / "python.md", "python")
    assert len(examples) == 3
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    command = [sys.executable, "-W", "error", "-c", examples[place]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_python_page_names_what_a_wrong_call_raises() -> None:
    log = str(ROOT / "sample_logs" / "healthy")
    (recording,) = gpureport.read(log)
    wrong: list[tuple[type[Exception], Callable[[], object]]] = [
        (GpureportError, lambda: gpureport.read("no-such-file")),
        (GpureportError, lambda: gpureport.read(log, tz="Mars")),
        (GpureportError, lambda: gpureport.analyze(recording, settings={"no-such-section": 1})),
        (TypeError, lambda: gpureport.read(log, labels={"no-such-key": 1})),
        (ValueError, lambda: gpureport.compare([recording])),
        (TypeError, lambda: gpureport.report(recording)),  # type: ignore[call-overload]  # that is what is tried
    ]
    for error, call in wrong:
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [block for _, block in BLOCK.findall(text)] + re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    named = {word for part in code for word in re.findall(r"(?:^|/)gpureport ([a-z]+)", part, re.MULTILINE)}
    added = re.findall(r'^\+    "([a-z]+)": ', text, re.MULTILINE)
    assert named <= {*COMMANDS, *added}


def test_settings_example_is_accepted() -> None:
    (example,) = blocks(ROOT / "docs" / "explanation" / "thresholds.md", "toml")
    (run,) = gpureport.read(str(ROOT / "sample_logs" / "healthy"))
    assert gpureport.analyze(run, settings=tomllib.loads(example)).run == run.run


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


def test_citation_keeps_its_schema_and_is_of_this_version() -> None:
    found = yaml.safe_load((ROOT / "docs" / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    assert (found["cff-version"], found["version"]) == ("1.2.0", __version__)
    assert all(set(author) & {"name", "family-names"} for author in found["authors"])

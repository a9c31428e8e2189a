"""What tests of the recipes for CI share: nights, and a machine with a driver and the programs that recipes name."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyarrow import parquet

from gpureport import __version__
from tests.docs.page_runner import ROOT, install, program
from tests.docs.test_pages import blocks
from tests.recorder.stand_in import install_stand_in

RECIPES = ROOT / "docs" / "how-to" / "ci"
HEALTHY = ROOT / "sample_logs" / "healthy" / "nvidia-smi.csv"
HOT = ROOT / "sample_logs" / "thermal_throttle" / "nvidia-smi.csv.gz"
"""Logs of a night that keeps `--fail-on problem`, and of one that breaks it."""


@dataclass(frozen=True, slots=True)
class Night:
    """What a machine does in one night: the log its driver plays (None: it has no driver), and its job's exit code."""

    number: int
    played: Path | None = HEALTHY
    trained: int = 0


PERSON = {f"GIT_{role}_{what}": "a@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
"""Who commits, to git."""

NIGHTS = (*map(Night, range(2)), Night(2, played=None), Night(3, played=HOT), Night(4, trained=9))
WHEEL = f"gpureport-{__version__}-py3-none-any.whl"
"""The file that a recipe installs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    folder: Path

    def run(
        self, words: Sequence[str], night: Night, folder: Path, path: Sequence[str] = (), **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of a recipe in a folder; programs are looked for in the folders of `path` first."""
        driver = [str(self.folder / "driver")] if night.played else []
        environment = {
            "PATH": os.pathsep.join([*path, str(self.folder / "bin"), *driver, os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "SOURCE_DATE_EPOCH": str(1_773_400_000 + night.number * 86_400),
            "STAND_IN_LOG": str(night.played),
            "STAND_IN_PAST": "yes",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
            **variables,
        }
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def run_all(self, commands: Sequence[Sequence[str]], folder: Path, **variables: str) -> None:
        for words in commands:
            done = self.run(words, NIGHTS[0], folder, **variables)
            assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"


def make_bench(folder: Path) -> Bench:
    """Return a machine with a driver and the programs that recipes name; `pip` has nothing left to do.

    A virtual environment that `python` makes holds `pip` and `gpureport`.
    """
    programs = folder / "bin"
    program(programs / "gpureport", f'#!/bin/sh\nexec {sys.executable} -m gpureport "$@"\n')
    program(programs / "pip", f'#!/bin/sh\n[ "$*" = "install wheels/{WHEEL}" ]\n')
    for name in ("python", "python3"):
        install("venv", programs / name, programs=programs)
    program(
        programs / "buildkite-agent", f'#!/bin/sh\n[ "$*" = "annotate --context gpu" ] && cat > {folder}/shown.md\n'
    )
    program(programs / "gh", f'#!/bin/sh\n[ "$1$2$4$6" = rundownload--name--dir ] && cp -r {folder}/$5-$3 "$7"\n')
    install_stand_in(folder / "driver")
    return Bench(folder=folder)


def workspace(folder: Path, night: Night) -> Path:
    program(folder / "train.sh", f"#!/bin/sh\nsleep 1\nexit {night.trained}\n")
    return folder


def count_runs(store: Path) -> list[int]:
    counts: dict[str, int] = {}
    for file in sorted((store / "history").glob("*.parquet")):
        rows = parquet.read_table(file, columns=["night", "status", "run_id"]).to_pylist()
        counts[file.stem[:10]] = len({row["run_id"] for row in rows if row["status"] == "measured"})
    return list(counts.values())


RUNS = [1, 1, 0, 1, 1]
"""Runs that a history holds of NIGHTS."""


def only_block(page: str, language: str) -> str:
    (text,) = blocks(RECIPES / f"{page}.md", language)
    return text


def find_faults(schema: str, file: Path, text: str) -> str:
    """Return what the schema of those who run a file says against it; the checker brings the schema along."""
    file.write_text(text)
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""

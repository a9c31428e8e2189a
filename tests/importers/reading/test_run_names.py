"""What runs are called that nobody named, alone and beside others."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.importers.reading.run_names import longer_names, make_names_distinct
from gpureport.importers.reading.sources import derive_name
from gpureport.testing import Run, Source
from tests.report import examples


def run(locator: str, name: str | None = None, kind: str = "nvidia_smi") -> Run:
    """Return a run of a log, called after it unless it has a name."""
    source = Source(kind=kind, locator=locator, sha256="ab" * 32)
    return replace(examples.run(name or derive_name(locator)), sources=(source,))


@pytest.mark.parametrize(
    ("locator", "name"),
    [
        ("a/run.csv", "run"),
        ("a/run.csv.gz", "run"),
        ("a/gpu.csv", "a"),
        ("a/nvidia-smi.log", "a"),
        ("gpu.csv", Path.cwd().name),
        ("base/1/gpu.csv", "base/1"),
        ("base/2026/03/gpu.csv.gz", "base/2026/03"),
        ("base/1-starved/gpu.csv", "1-starved"),
        ("base/1.csv", "1"),
        ("/1/gpu.csv", "1"),
    ],
)
def test_a_run_is_called_after_its_log_or_its_folder(locator: str, name: str) -> None:
    """Its folder where the log is called what such logs are called; of a numbered one with the folder above."""
    assert derive_name(locator) == name


@pytest.mark.parametrize(
    ("locators", "names"),
    [
        (["c1/starved/gpu.csv", "c2/starved/gpu.csv"], ["c1/starved", "c2/starved"]),
        (["c1/run.csv", "c2/run.csv"], ["c1/run", "c2/run"]),
        (["c1/x/starved/gpu.csv", "c2/x/starved/gpu.csv", "c2/y/starved/gpu.csv"], None),
        (["starved/gpu.csv", "c2/starved/gpu.csv"], None),
        (["c1/gpu.csv", "c1/gpu.csv"], ["c1", "c1"]),
        (["c1/gpu.csv", "c1/gpu.csv", "c2/c1/gpu.csv"], None),
        (["c1/gpu.csv"], ["c1"]),
        (["a/base/1/gpu.csv", "b/base/1/gpu.csv"], ["a/base/1", "b/base/1"]),
        (["base/1/gpu.csv", "base/1/gpu.csv"], ["base/1", "base/1"]),
        ([], []),
    ],
)
def test_as_much_of_a_path_as_differs(locators: list[str], names: list[str] | None) -> None:
    """No part more than it takes; the same log twice cannot be told apart."""
    found = longer_names(locators)
    assert len(set(found)) == len({str(Path(each).resolve()) for each in locators})
    assert names is None or found == names


def test_names_that_were_given_stay() -> None:
    """Only those are longer that come from paths."""
    runs = [
        run("c1/gpu.csv", "same"),
        run("c2/same.csv"),
        run("c3/same.csv"),
        run("mlflow:mlruns#same", "same", "mlflow"),
        run("-", "standard input"),
        run("c4/other.csv"),
    ]
    names = ["same", "c2/same", "c3/same", "same", "standard input", "other"]
    assert [each.name for each in make_names_distinct(runs)] == names

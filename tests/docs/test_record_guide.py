"""The commands of the guide to recording run on a machine with a stand-in driver, a stand-in Docker and a pod."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.page_runner import install_programs, program
from tests.docs.test_pages import PAGES, ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "record.md"
_DOCKER = """#!/bin/sh
# stands in for docker: runs here what it is to run in the image
while [ "$1" != my-image ]; do shift; done
shift
exec "$@"
"""


def run(words: Sequence[str], folder: Path) -> None:
    environment = install_programs(folder)
    program(folder / "bin" / "docker", _DOCKER)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def is_complete(recorded: Path) -> bool:
    return bool(json.loads((recorded / "run.json").read_text())["exit_code"] == 0)


@pytest.mark.slow
def test_first_commands_record_and_report(tmp_path: Path) -> None:
    (change,) = blocks(PAGE, "bash")
    for command in (blocks(PAGE, "sh")[0], change):
        run(["sh", "-e", "-c", command], tmp_path)
    assert is_complete(tmp_path / "runs" / "base")
    assert is_complete(tmp_path / "runs" / "more-workers")
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 2], ids=["outside", "inside"])
def test_container_is_recorded(place: int, tmp_path: Path) -> None:
    command = blocks(PAGE, "sh")[place].replace(" /runs/", f" {tmp_path}/runs/")
    run(["sh", "-e", "-c", command], tmp_path)
    assert is_complete(tmp_path / "runs" / "base")


@pytest.mark.slow
def test_pods_are_one_run(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "yaml")
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
    run(["sh", "-e", "-c", blocks(PAGE, "sh")[3]], tmp_path)
    assert (tmp_path / "report.html").is_file()


def test_pages_print_one_command() -> None:
    pattern = re.compile(r"--query-gpu=([\w.,]*\w)(?=\s)")
    (fields,) = pattern.findall(PAGE.read_text(encoding="utf-8"))
    assert fields.count(",") >= 30
    others = {field for page in PAGES for field in pattern.findall(page.read_text(encoding="utf-8"))} - {fields}
    assert others == set()

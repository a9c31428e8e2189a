"""The guide to putting reports where people look: its commands run, with programs to stand in for those of clouds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.page_runner import install_programs, program
from tests.docs.test_pages import ROOT, blocks
from tests.importers.trackers.mlflow.stores import HARDWARE, Made, database, folder, monitored, run_id
from tests.places.s3_server import s3_server
from tests.support.logs import log

PAGE = ROOT / "docs" / "how-to" / "publish.md"
RUN = Made(id=run_id(1), name="baseline", series=monitored(range(0, 100_000, 10_000)))
STEPS = [
    Made(
        id=run_id(number),
        name=f"step {number}",
        series=monitored(range(0, 1_200_000, 10_000), HARDWARE | {"gpu_0_utilization_percentage": 30.0 * number}),
    )
    for number in (2, 3)
]
_CLOUD = """#!/bin/sh
# stands in for the program of a cloud: takes the options that program has, and copies within a folder
set -e
at() { case $1 in *:*) echo "$CLOUD/${1#*:}" ;; *) echo "$1" ;; esac; }
case "${0##*/} $1" in
"aws s3" | "gcloud storage")
    [ "$2" = cp ]
    from=$3 to=$(at "$4")
    ;;
"az storage")
    [ "$2 $3 $4 $5 $7 $9" = "blob upload --overwrite --container-name --file --name" ]
    from=$8 to=$CLOUD/$6/${10}
    ;;
"rclone copyto") from=$2 to=$(at "$3") ;;
"rclone copy")
    from=$(at "$2")/. to=$(at "$3")/.
    ;;
*) exit 64 ;;
esac
mkdir -p "${to%/*}"
cp -R "$from" "$to"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "gpu.csv").write_text(log(120))
    database(tmp_path / "mlflow.db", [RUN])
    folder(tmp_path / "mlruns", STEPS)
    return tmp_path


def run(machine: Path, command: str, folder: Path | None = None) -> None:
    environment = install_programs(machine) | {"CLOUD": str(machine / "cloud"), "BUCKET": "nightly"}
    for name in ("aws", "gcloud", "az", "rclone"):
        program(machine / "bin" / name, _CLOUD)
    words = ["bash", "-e", "-c", command]
    done = subprocess.run(words, cwd=folder or machine, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_folder_and_mlflow(machine: Path) -> None:
    for command in blocks(PAGE, "sh"):
        run(machine, command)
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
    command = blocks(PAGE, "bash")[0].splitlines()[0]
    assert command.startswith("aws s3 cp ")
    put, got = command, 'aws s3 cp "s3://$BUCKET/gpu/report.html" back.html'
    names = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_DEFAULT_REGION": "us-east-1"}
    words = ["bash", "-e", "-c", f'aws s3 mb "s3://$BUCKET"\n{put}\n{got}']
    with s3_server() as port:
        there = names | {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "BUCKET": "nightly",
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(words, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back.html").read_bytes() == (tmp_path / "report.html").read_bytes()


@pytest.mark.slow
def test_bucket(machine: Path) -> None:
    report, nights = blocks(PAGE, "bash")
    run(machine, blocks(PAGE, "sh")[0])
    for command in report.splitlines():
        run(machine, command)
        (put,) = (path for path in (machine / "cloud").rglob("gpu/report.html") if "nightly" in path.parts)
        assert put.read_bytes() == (machine / "report.html").read_bytes()
        put.unlink()
    for number, name in enumerate(("one", "two")):
        (machine / name).mkdir()
        (machine / name / "gpu.csv").write_text(log(120 + number))
        dated = nights.replace("--site site", f"--site site --date 2026-03-1{number}")
        # the first night has nothing to fetch
        run(machine, dated if number else dated.partition("\n")[2], machine / name)
    kept = sorted(path.name[:10] for path in (machine / "cloud" / "nightly" / "history").glob("*.parquet"))
    assert kept == ["2026-03-10", "2026-03-11"]
    assert len(list((machine / "cloud" / "nightly" / "site" / "nights").glob("*.html"))) == 2

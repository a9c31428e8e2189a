"""Every code block of README and docs runs here, or in the test that is named for it, or says why it cannot."""

import json
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.page_runner import ROOT, Block, find_missing_line, read_blocks, run_blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_RUN = ("sh", "bash", "python", "sql")
_FAILS = "gpureport check sample_logs/thermal_throttle"
"""A gate that is shown because it fails."""
_PATH = re.compile(r"(?:tests|sample_logs)/[\w/.]*\w")
ELSEWHERE = {
    "docs/contributing/": "tests/docs/test_recipes.py",
    "docs/how-to/ci/github-actions.md": "tests/docs/test_recipes.py",
    "docs/how-to/ci/": "tests/docs/test_ci.py",
    "docs/how-to/publish.md": "tests/docs/test_pages.py",
    "docs/how-to/nightly.md": "tests/docs/test_ci.py",
    "docs/how-to/record.md": "tests/docs/test_pages.py",
    "docs/explanation/thresholds.md": "tests/docs/test_pages.py",
    "docs/reference/python.md": "tests/docs/test_pages.py",
}
"""Pages, or folders of pages, whose blocks a test of their own runs or checks."""

_GATE = "tests/docs/test_ci.py::test_pull_request"
NOT_RUN = {
    "python3 -m venv": "the set-up: .ci/run runs it, as tests/docs/test_pages.py holds",
    "git add --force": "as in the recipes: tests/docs/test_ci.py::test_gitlab",
    "rm -rf run\n": _GATE,
    "for n in 1 2 3": _GATE,
    "pip ": "a package index",
    "sar ": "asks sysstat without an end: tests/readers reads what it writes",
    "sacct ": "Slurm: tests/importers/labelling reads what it writes",
    "while true": "asks gpustat without an end: sample_logs/gpustat is what it wrote",
    "from nvitop": "a GPU, for an hour: sample_logs/recorded/phases is what it wrote",
    "import wandb": "a server: sample_logs/wandb is what it wrote",
    "mlflow.log_artifact": "a line of a training script: tests/importers/trackers/mlflow reads what it stores",
    "gpureport compare 'mlflow:mlflow.db#w2*'": "a store that is not shipped: tests/importers/trackers/mlflow",
    "gpureport ingest --list mlflow:": "a store that is not shipped: tests/importers/trackers/mlflow",
    "gpureport ingest --list exports": "a store that is not shipped: tests/importers/trackers/neptune",
    "gpureport report mlflow:mlflow.db --experiment": "a store that is not shipped: tests/statistics",
    "gpureport ingest --list vision.db": "a database that is not shipped: tests/importers/trackers",
    "export GPU_RUNS": "a bucket: tests/places",
    "CREATE SECRET": "a bucket",
    "gpureport runs list --since": "a store of large runs: tests/store and tests/cli/commands/test_small_commands.py",
    "gpureport compare baseline/ workers/ --by folder --target": "training logs that are not shipped: tests/cli",
    "  2-more-workers 3 runs\n": "a part of a longer table: tests/report/test_steps.py",
    "  column gpu_util%": "of a log with headings that a person wrote: tests/cli/commands/test_nightly.py",
    "gpureport: jobs.csv": "of 200 runs that are not shipped: tests/cli",
    "[[policy]]": "tests/docs/test_pages.py::test_policy_example_is_accepted",
    "[baseline]": "tests/docs/test_pages.py",
    "[secrets]": "tests/secrets/test_own_secrets.py",
    "apiVersion": "a cluster: tests/docs/test_blocks.py parses it",
    "env:": "a cluster, as above",
    "echo 'command -v": "tests/cli/test_help.py",
    "#!/bin/bash\n#SBATCH --job-name=fleet": "Slurm: tests/fleet starts Dask as it does",
}
"""What a block begins with that nothing here can run, and why, or where it is tried."""

SHOWN = {
    "docs/how-to/compare-steps.md": {"[[step]]": "steps.toml", "[training]": "gpureport.toml"},
    "docs/how-to/fleet.md": {"run,team": "teams.csv"},
    "docs/how-to/pdf.md": {"[report]": "gpureport.toml"},
    "docs/how-to/prices.md": {"[prices]": "gpureport.toml"},
    "docs/how-to/read-logs.md": {"[time]": "map.toml"},
    "docs/how-to/labels.md": {"run,user": "labels.csv", "{": "logs/labels.json"},
    "docs/how-to/neptune.md": {"[neptune]": "map.toml"},
}
"""Blocks that are files: what they begin with, and the name under which the commands of the page find them."""

_STEPS = "ln -s sample_logs/input_starved/* . && rm README.md"
_CHAIN = """
for run in 1 2 3; do
    ln -s sample_logs/recorded/training_steps/1-starved/$run baseline-$run
    ln -s sample_logs/recorded/training_steps/2-more-workers/$run workers-$run
    cp baseline-$run/nvidia-smi.csv.gz baseline-$run.csv
    cp workers-$run/nvidia-smi.csv.gz workers-$run.csv
done
for run in a b c; do
    mkdir run-$run && cp baseline-1.csv run-$run/gpu.csv
    echo '{"params": {"batch_size": "'$run'"}}' > run-$run/labels.json
done
mkdir experiments
ln -s ../sample_logs/recorded/training_steps/2-more-workers experiments/workers
ln -s ../sample_logs/recorded/training_steps/1-starved experiments/baseline
for name in baseline workers; do ln -s experiments/$name $name; done
ln -s baseline short && ln -s workers long
"""
_PAIR = """
cp sample_logs/healthy/nvidia-smi.csv gpu.csv && cp gpu.csv after.csv
cp sample_logs/healthy/host.csv host.csv && cp host.csv after-host.csv
cp sample_logs/input_starved/1-baseline/nvidia-smi.csv before.csv
cp sample_logs/input_starved/1-baseline/host.csv before-host.csv
"""
_BRAND = """
mkdir brand
echo '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>' > brand/logo.svg
cp "$(python -c 'import matplotlib; print(matplotlib.get_data_path())')/fonts/ttf/cmr10.ttf" brand/font.otf
"""
_FORMS = """
gzip -k gpu.csv && cp gpu.csv gpu.csv.1 && cp gpu.csv.gz gpu.csv.2.gz
cp sample_logs/dmon/dmon.log . && cp -r sample_logs/healthy recording && cp -r recording logs-of-all-nodes
python - <<'END OF SET-UP'
import pyarrow as pa
with pa.output_stream("host.csv.zst", compression="zstd") as out:
    out.write(open("host.csv", "rb").read())
times = [f"2026/03/14 {9 + s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}.000" for s in range(900)]
working = [s < 300 or s > 500 for s in range(900)]
rows = [f"{time}, 0, {90 * on} %, {9000 * on} MiB" for time, on in zip(times, working)]
open("gpu.log", "w").write("\\n".join(rows))
open("night.csv", "w").write("timestamp, index, utilization.gpu [%], memory.used [MiB]\\n" + "\\n".join(rows))
stamps = [f"{1_773_000_000 + s},{200 + s % 9},{9000 + s}" for s in range(900)]
open("power.csv", "w").write("when,GPU0 power,RAM\\n" + "\\n".join(stamps))
END OF SET-UP
"""
SET_UP = {
    "docs/tutorial/first-report.md": "cp sample_logs/healthy/nvidia-smi.csv gpu.csv",
    "README.md": "gpureport record -o runs/more-workers -- python train.py",
    "docs/how-to/compare-steps.md": _STEPS + _CHAIN,
    "docs/how-to/fleet.md": """
mkdir logs && cp -r sample_logs/healthy sample_logs/input_starved/1-baseline logs
gpureport record -o now -- ./train.sh
printf 'run,user,project,node\\nhealthy,ada,vision,n0\\n' > jobs.csv
gpureport ingest now logs
""",
    "docs/how-to/keep-runs.md": _PAIR,
    "docs/how-to/labels.md": """
mkdir -p base logs/night-12
cp sample_logs/healthy/nvidia-smi.csv base/gpu.csv
cp sample_logs/input_starved/1-baseline/nvidia-smi.csv logs/gpu.csv
gpureport ingest base --labels labels.csv && gpureport runs list --tag user=ada --tag cost_center=cc-7 | grep base
gpureport ingest logs && gpureport runs list --where param:batch_size=64 | grep base
""",
    "docs/how-to/neptune.md": """
tar xzf sample_logs/recorded/training_steps/neptune.tar.gz
gpureport analyze neptune:neptune --map map.toml
""",
    "docs/how-to/pdf.md": _PAIR + _BRAND,
    "docs/how-to/prices.md": _PAIR
    + """
mkdir runs && ln -s ../sample_logs/recorded/training_steps/1-starved runs/base
ln -s ../sample_logs/recorded/training_steps/2-more-workers runs/more-workers
""",
    "docs/how-to/read-the-report.md": _PAIR,
    "docs/how-to/read-logs.md": _PAIR + _FORMS,
}
"""What the reader of a page has before its first command, as shell; where a page shows files alone, what reads them."""


def list_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are run here, each with the text it is to print behind it."""
    return [
        block for block in read_blocks(page) if not is_elsewhere(block) and not block.text.startswith(tuple(NOT_RUN))
    ]


def is_elsewhere(block: Block) -> bool:
    return block.page.startswith(tuple(ELSEWHERE))


def _expect_failure(block: Block) -> Block:
    """Return a block that is to end with 1 as one that succeeds where it does."""
    fails = block.text.startswith(_FAILS)
    return block._replace(text=f"{{ {block.text}}} || test $? = 1\n") if fails else block


def check_page(page: Path, folder: Path) -> None:
    """Run the blocks of a page in order; each must succeed and print what the page shows."""
    (folder / "sample_logs").symlink_to(ROOT / "sample_logs")
    blocks = list_blocks(page)
    name = page.relative_to(ROOT).as_posix()
    for start, file in SHOWN.get(name, {}).items():
        (text,) = (block.text for block in blocks if block.text.startswith(start))
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    commands = [_expect_failure(block) for block in blocks if block.language in _RUN]
    before = Block(page=name, language="sh", text=SET_UP.get(name, ":") + "\n")
    _, *others = run_blocks([before, *commands], folder)
    printed = iter(others)
    last = ""
    for block in blocks:
        if block.language in _RUN:
            last = next(printed)
        elif block.language == "text":
            assert find_missing_line(block.text, last) is None, (
                f"{block.text}\nis shown, where this is printed:\n{last}"
            )


def _mark_slow(page: Path) -> "pytest.ParameterSet":
    name = page.relative_to(ROOT).as_posix()
    return pytest.param(
        page, id=name, marks=(pytest.mark.slow, pytest.mark.smoke) if name == "README.md" else pytest.mark.slow
    )


@pytest.mark.parametrize("page", [_mark_slow(page) for page in PAGES if list_blocks(page)])
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    check_page(page, tmp_path)


def test_every_block_is_looked_after() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page)]
    known = [start for starts in SHOWN.values() for start in starts]
    stray = [
        block
        for block in blocks
        if not is_elsewhere(block)
        and block.language not in (*_RUN, "text")
        and not block.text.startswith((*known, *NOT_RUN))
    ]
    assert stray == []
    assert [start for start in NOT_RUN if not any(block.text.startswith(start) for block in blocks)] == []
    named = {path for reason in (*ELSEWHERE.values(), *NOT_RUN.values()) for path in _PATH.findall(reason)}
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_files_that_a_cluster_reads_are_valid() -> None:
    for page in PAGES:
        for block in read_blocks(page):
            if block.language == "yaml":
                assert all(yaml.safe_load_all(block.text)), block.text
            elif block.language == "json":
                assert json.loads(block.text)

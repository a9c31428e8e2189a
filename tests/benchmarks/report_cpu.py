"""Prints the processor time `gpureport report` takes for a log of 8 GPUs over 2 hours, against its imports alone.

Run by hand: `python -m tests.benchmarks.report_cpu [ROUNDS]`.
"""

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.samples import generate, scenarios

IMPORTS = "import click, numpy, pyarrow.parquet, jinja2, matplotlib.figure, matplotlib.backends.backend_svg"


def large_log(folder: Path) -> Path:
    """Write a log of 8 GPUs over 2 hours, a row a second."""
    job = replace(scenarios.HEALTHY.job, steps=17_300)
    slots = scenarios.HEALTHY.coolings * 4
    scenario = replace(scenarios.HEALTHY, interval=1, job=job, coolings=slots, fields=scenarios.LEAN)
    log = folder / "nvidia-smi.csv"
    log.write_text(generate.files(scenario)["nvidia-smi.csv"], encoding="ascii", newline="\n")
    return log


def cpu_seconds(command: list[str]) -> float:
    """Return user and system time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main(rounds: int = 5) -> None:
    """Time both in turn, several rounds, and print medians and their ratio."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        log = large_log(folder)
        report = [sys.executable, "-m", "gpureport", "report", str(log), "-o", str(folder / "report.html")]
        pairs = [(cpu_seconds([sys.executable, "-c", IMPORTS]), cpu_seconds(report)) for _ in range(rounds)]
        imports, whole = (median(column) for column in zip(*pairs, strict=True))
        rows = log.read_bytes().count(b"\n") - 1
    ratio = (
        f"{rows} rows: report {whole:.2f} s of processor time, imports alone {imports:.2f} s, {whole / imports:.1f} x"
    )
    print(ratio)  # noqa: T201 - its output is what a benchmark is run for


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))

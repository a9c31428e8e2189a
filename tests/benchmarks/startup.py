"""Prints what `gpureport --help` and `--version` cost beside a bare `import click`, interleaved in one run.

Run by hand: `python -m tests.benchmarks.startup [ROUNDS]`.
"""

import subprocess
import sys
from statistics import median
from time import perf_counter

COMMANDS = {
    "import click": [sys.executable, "-c", "import click"],
    "gpureport --help": [sys.executable, "-m", "gpureport", "--help"],
    "gpureport --version": [sys.executable, "-m", "gpureport", "--version"],
}


def seconds(command: list[str]) -> float:
    """Return how long a command takes, process start included."""
    begin = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - begin


def main(rounds: int = 15) -> None:
    """Time every command in turn, several rounds, and print medians and ratios."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            taken[name].append(seconds(command))
    floor = median(taken["import click"])
    for name, times in taken.items():
        line = f"{name:20} {1000 * median(times):7.1f} ms  {median(times) / floor:5.2f} x import click"
        print(line)  # noqa: T201 - its output is what a benchmark is run for


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))

"""Runs and nights that tests of rules look at."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyarrow import parquet

from gpureport import Analysis
from gpureport.testing import Check, Work, check
from tests.statistics.runs import level, made
from tests.support.logs import HEADER, row
from tests.support.program import Outcome, run_program


def date(number: int) -> str:
    return f"2026-01-{number + 1:02}"


def write_log(path: Path, number: int, util: int = 90, rows: int = 120) -> Path:
    """Write the log of a night: one GPU that holds a utilisation, unlike every other night."""
    power = f"{240 + number}.00 W"
    lines = [row(second, util=min(util + second * 7 % 5 - 2, 100), power=power) for second in range(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *lines, ""]))
    return path


def add_night(folder: Path, number: int, *more: str, util: int = 90, rows: int = 120) -> Outcome:
    write_log(folder / "night.csv", number, util, rows)
    return run_program(folder, "nightly", "night.csv", "--site", "site", "--date", date(number), *more)


def history(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / ".gpureport" / "history").glob("*.parquet"))
    return [line for path in files for line in parquet.read_table(path).to_pylist()]


def site(folder: Path, name: str = "site") -> dict[str, str]:
    place = folder / name
    return {path.relative_to(place).as_posix(): path.read_text() for path in sorted(place.rglob("*.html"))}


PASSED, BROKEN, CANNOT = "passed", "broken", "cannot judge"


def one(rules: Any, *runs: Analysis, **more: Any) -> Check:
    (found,) = check(rules, *runs, **more)
    return found


def told(found: Check) -> tuple[str, str]:
    return found.outcome.value, found.reason_code


def night(name: str, mean: float, count: int = 1800, seed: int = 0, **more: Any) -> Analysis:
    return made(name, util=level(mean, count, seed), power=200.0, **more)


def worked(name: str, seconds: float, amount: int = 600, step: str | None = None, every: float = 0.1) -> Analysis:
    """Return a run that took so long for its steps, sampled ten times a second."""
    util = level(95, round(seconds / every), 1)
    return made(name, step=step, util=util, every=every, work=Work(amount=amount, unit="steps"))


def of_step(runs: Sequence[Analysis], step: str = "nightly") -> list[Analysis]:
    return [replace(run, run=replace(run.run, step=step)) for run in runs]

"""Prints what `gpureport ingest` costs beside what other tools take to turn the same log into typed Parquet.

Run by hand: `python -m tests.benchmarks.ingest [--size 10MB --size 200MB --size 2GB] [--rounds 5]`. Candidates take
turns, each a process of its own; figures are medians. Wall times hold only where nothing else runs.
"""

import argparse
import shutil
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import duckdb

from tests.benchmarks import cost, entropy, log
from tests.benchmarks.cost import Cost
from tests.benchmarks.peers import PEERS

OURS = "gpureport"
_SMALL = 50 * 10**6
_LARGE = 1000 * 10**6


def command(name: str, source: Path, output: Path) -> list[str]:
    """Return the command line of a candidate."""
    if name == OURS:
        return [sys.executable, "-m", "gpureport", "ingest", str(source), "--store", str(output)]
    return [sys.executable, "-m", "tests.benchmarks.peers", name, str(source), str(output)]


def series(output: Path) -> Path:
    """Return the Parquet file of a candidate's output."""
    return next(output.glob("runs/*/hardware.parquet")) if output.is_dir() else output


def taken_by(name: str, source: Path, output: Path) -> Cost:
    """Run a candidate and return what it took."""
    shutil.rmtree(output, ignore_errors=True)
    output.unlink(missing_ok=True)
    return cost.of(command(name, source, output))


def typical(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        wall=median(each.wall for each in costs),
        cpu=median(each.cpu for each in costs),
        memory=round(median(each.memory for each in costs)),
    )


def differences(ours: Path, theirs: Path) -> int:
    """Return how many rows of a peer's output have no equal row in ours."""
    query = f"""
        select count(*) from (
            select timestamp, "index", utilization, cast(memory_used as bigint) * 1048576, round(power, 2), temperature,
                cast(sm_clock as bigint) * 1000000, reasons & 4 > 0 from '{theirs}'
            except
            select timestamp, cast(replace(device, 'gpu:', '') as integer),
                cast(round(gpu_utilization_ratio * 100) as integer), gpu_memory_used_bytes, round(gpu_power_watts, 2),
                gpu_temperature_celsius, gpu_sm_clock_hertz, clock_event_sw_power_cap from '{ours}'
        )
    """  # noqa: S608 - paths of a benchmark
    row = duckdb.connect().execute(query).fetchone()
    return int(row[0]) if row else 0


def goals(size: int, costs: dict[str, Cost], reached: float) -> list[str]:
    """Return each goal for a size with what was reached; `reached` is bytes written over their entropy."""
    ours, strings, polars = costs[OURS], costs["strings"], costs["polars"]
    lines = [f"memory {ours.memory / 1e6:.0f} MB, goal 400", f"bytes a row {reached:.2f} x entropy, goal 1.5"]
    if size <= _SMALL:
        return [*lines, f"whole process {ours.wall:.2f} s, goal 0.5"]
    times, share = (3, 1.0) if size >= _LARGE else (2.5, 0.9)
    for what, one, other, goal in (("strings only", ours, strings, times), ("polars", ours, polars, share)):
        lines += [f"{one.wall / other.wall:.2f} x {what} (cpu {one.cpu / other.cpu:.2f} x), goal {goal}"]
    return lines


def compare(size: int, rounds: int, folder: Path) -> list[str]:
    """Return the lines of one size."""
    source = folder / "log.csv"
    log.write(source, size)
    outputs = {OURS: folder / "store", **{name: folder / f"{name}.parquet" for name in PEERS}}
    taken: dict[str, list[Cost]] = {name: [] for name in outputs}
    for _ in range(rounds):
        for name, output in outputs.items():
            taken[name].append(taken_by(name, source, output))
    costs = {name: typical(each) for name, each in taken.items()}
    with source.open("rb") as file:
        rows = sum(block.count(b"\n") for block in iter(lambda: file.read(2**24), b"")) - 1
    lines = [f"{size / 1e6:.0f} MB, {rows} rows, {rounds} rounds"]
    written = {name: series(output).stat().st_size / rows for name, output in outputs.items() if output.exists()}
    for name, each in costs.items():
        figures = (
            f"{each.wall:7.2f} s {each.cpu:7.2f} s cpu {each.memory / 1e6:6.0f} MB {written.get(name, 0):6.2f} B/row"
        )
        lines.append(f"  {name:10} {figures}  {size / 1e6 / each.cpu:6.0f} MB per cpu second")
    floor = entropy.bytes_a_row(outputs["polars"])
    lines.append(f"  entropy    {floor:.2f} B/row, estimated")
    lines += [f"  {line}" for line in goals(size, costs, written[OURS] / floor)]
    if size <= _LARGE:
        apart = {name: differences(series(outputs[OURS]), outputs[name]) for name in ("polars", "duckdb")}
        lines.append(f"  rows with other values than ours: {apart}")
    return lines


def main() -> None:
    """Compare at every size asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", action="append", type=log.size_of)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for size in given.size or [log.size_of(text) for text in ("10MB", "200MB", "2GB")]:
        with TemporaryDirectory() as name:
            print("\n".join(compare(size, given.rounds, Path(name))), flush=True)  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()

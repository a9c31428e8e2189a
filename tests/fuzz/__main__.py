"""Gives hostile texts to every reader, and prints what ended neither in a result nor in an error of the project.

`python -m tests.fuzz --executions 100000 --keep findings "table of labels"` gives as many to one target; without a
target they are shared among all, and `--list` names them. Where atheris is installed, texts are chosen by the code they
reach; elsewhere samples are damaged at random. `--corpus FOLDER` keeps the texts that reached new code for the next
time. The exit status is 1 if there was an offence.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.worker import TARGETS, Work, work_through


@dataclass(slots=True)
class Report:
    """What became of one target: executions, and a text for each offence by the place of the fault."""

    executions: int = 0
    offences: dict[str, tuple[str, bytes]] = field(default_factory=dict)


def run_target(name: str, options: argparse.Namespace, executions: int, seconds: float) -> Report:
    """Run workers until the executions are made or the time is up; one that dies is an offence and has a successor."""
    report, until = Report(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir=find_memory_folder()) as place:
        folder = Path(place)
        corpus = options.corpus / name.replace("/", "_") if options.corpus else folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for number in range(options.deaths):
            if report.executions >= executions or time.monotonic() >= until:
                break
            own = folder / f"own{number}"
            own.mkdir()
            work = Work(
                target=name,
                executions=executions - report.executions,
                until=until,
                seed=options.seed + number,
                folder=own,
                corpus=corpus,
                out=folder / f"out{number}",
            )
            # forked, since loading and instrumenting everything takes longer than many a reader is given
            worker = get_context("fork").Process(target=work_through, args=[work])
            worker.start()
            worker.join()
            take_lines(report, work.out)
            if worker.exitcode:
                add_death(report, work, worker.exitcode)
    return report


def add_death(report: Report, work: Work, code: int) -> None:
    """Add the death of a worker as an offence, with the text it died of."""
    said = work.out.with_suffix(".err").read_text(encoding="utf-8", errors="replace").strip()
    what = next((line for line in said.splitlines() if "ERROR" in line), said[-300:])
    last = work.folder / TARGETS[work.target].file
    report.offences[f"died with {code}: {what[:120]}"] = said[-2000:], last.read_bytes() if last.exists() else b""


def find_memory_folder() -> str | None:
    """Return a folder that lies in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of a name of its own in it


def take_lines(report: Report, out: Path) -> None:
    """Add what a worker wrote."""
    executions = 0
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
        said = json.loads(line)
        executions = said.get("executions", executions)
        if "where" in said:
            report.offences.setdefault(said["where"], (said["what"], bytes.fromhex(said["data"])))
    report.executions += executions


def main() -> int:
    """Run the targets one after another; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help="which; all without")
    parser.add_argument("--executions", type=int, default=10_000, help="in all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, in all")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another gives other texts")
    parser.add_argument("--corpus", type=Path, help="where texts that reach new code are kept")
    parser.add_argument("--keep", type=Path, help="where texts that offend are kept")
    parser.add_argument("--deaths", type=int, default=5, help="workers a target may kill")
    parser.add_argument("--list", action="store_true", help="print the targets")
    options = parser.parse_args()
    if options.list:
        sys.stdout.write("".join(f"{name}\n" for name in TARGETS))
        return 0
    chosen = options.target or list(TARGETS)
    if unknown := set(chosen) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; --list names them")
    totals: Counter[str] = Counter()
    for name in chosen:
        report = run_target(name, options, options.executions // len(chosen), options.seconds / len(chosen))
        totals["executions"] += report.executions
        totals["offences"] += len(report.offences)
        sys.stdout.write(f"{name}: {report.executions:,} executions, {len(report.offences)} offences\n")
        for place, (where, (what, data)) in enumerate(report.offences.items()):
            sys.stdout.write(f"  {where}: {what[:300]}\n    {data[:100]!r}\n")
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name.replace('/', '_')} {options.seed} {place}").write_bytes(data)
        sys.stdout.flush()
    sys.stdout.write(f"{totals['executions']:,} executions, {totals['offences']} offences\n")
    return 1 if totals["offences"] else 0


if __name__ == "__main__":
    sys.exit(main())

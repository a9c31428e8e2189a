"""Reads many damaged logs and prints for each form how they ended, the slowest and the one that took most memory.

Run by hand: `python -m tests.fuzz.by_hand --cases 100000 --seed 1 --jobs 2`. Another seed gives other cases, so that
runs add up. A case that took too long or too much is read again, alone in a fresh process, and counts if it does so
there as well. The exit status is 1 if a case offended.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import copy

from tests.fuzz.families import FORMS, family
from tests.fuzz.measuring import MIB, Case, Tally, allowed, measured

A_SEED = 1_000_000
"""Numbers of cases from one seed to the next; the tests read the first ones of seed 0."""
A_PROCESS = 10_000
"""Cases that are read by one process."""


def apart(form: str, numbers: range, keep: Path | None) -> Tally:
    """Read cases in a process of their own; if it dies, the case that killed it is an offending one."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            return process.submit(measured, form, numbers, Path(folder)).result()
        except BrokenProcessPool:
            tally, path = Tally(), Path(folder) / "log"
            size = path.stat().st_size
            if keep:
                copy(path, keep / f"{form.replace('/', '_')}_died_from_{numbers.start}")
            dead = Case(form=form, number=numbers.start, size=size, ending="DIED", unexpected=True, seconds=0.0, over=0)
            tally.add(dead)
            return tally


def counted(form: str, numbers: range, jobs: int, keep: Path | None) -> Tally:
    """Read cases of a form in several processes; what offends without an exception is looked at again, alone."""
    whole = Tally()
    chunks = [numbers[place : place + A_PROCESS] for place in range(0, len(numbers), A_PROCESS)]
    with ThreadPoolExecutor(jobs) as threads:
        for each in threads.map(partial(apart, form, keep=keep), chunks):
            whole.merge(each)
    whole.offending = [again for case in whole.offending for again in _again(case, keep)]
    return whole


def _again(case: Case, keep: Path | None) -> Iterator[Case]:
    alone = apart(case.form, range(case.number, case.number + 1), keep)
    yield from [case] if case.unexpected else alone.offending


def line(form: str, numbers: range, tally: Tally) -> str:
    """Return what is said of a form."""
    slow, large = tally.slowest, tally.largest
    if slow is None or large is None:
        return f"{form}: no cases"
    return (
        f"{form}: cases {numbers.start:,} to {numbers.stop - 1:,} {dict(tally.endings.most_common())}; "
        f"slowest {slow.seconds:.3f} s of the processor (case {slow.number}, {slow.size:,} bytes); "
        f"most {large.over / MIB:.1f} MiB over idle of {allowed(large.size) / MIB:.1f} "
        f"(case {large.number}, {large.size:,} bytes); {tally.left / MIB:.1f} MiB left at the end; "
        f"{len(tally.offending)} offending"
    )


def main(options: argparse.Namespace) -> int:
    """Read the cases of each form and print a line for each; return the exit status."""
    offended = 0
    first = options.seed * A_SEED + options.first
    numbers = range(first, first + options.cases)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    for form in options.form or FORMS:
        tally = counted(form, numbers, options.jobs, options.keep)
        for case in tally.offending:
            sys.stdout.write(f"OFFENDING {case}\n")
            if options.keep and case.ending != "DIED":
                its, own = family(form)
                kept = options.keep / f"{form.replace('/', '_')}_{case.number}"
                kept.write_bytes(its.mutated(own, case.number))
        offended += len(tally.offending)
        sys.stdout.write(f"seed {options.seed}, {line(form, numbers, tally)}\n")
        sys.stdout.flush()
    return 1 if offended else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000, help="of each form; at most a million")
    parser.add_argument("--seed", type=int, default=1, help="the cases begin at the number of this million")
    parser.add_argument("--first", type=int, default=0, help="the first case after that")
    parser.add_argument("--form", choices=FORMS, action="append", help="may be repeated; all without it")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--keep", type=Path, help="folder that offending logs are written to")
    sys.exit(main(parser.parse_args()))

"""Drives random recordings through analyses, reports and comparisons, and prints each fault with its number.

Run by hand: `python -m tests.fuzz.recordings_by_hand --first 0 --trials 20000`. Other numbers are other recordings, so
that runs add up; `--trials 1` with the number that was printed makes one again, with its traceback. The exit status is
1 if a recording offended.
"""

import argparse
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time
from types import FrameType

from gpureport.errors import GpureportError
from tests.fuzz.properties import STAGES, Stage

PATIENCE = 20
"""Seconds of the clock after which a recording is held to be endless."""
MEMORY = 4 * 2**30
"""Bytes of address space that all of this may take: no recording is worth more than some of it."""
_ROOT = Path(__file__).parents[2]


def fault(stage: Stage, number: int) -> str:
    """Return what went wrong and where, empty where nothing did; an error of the project is a result."""
    signal.alarm(PATIENCE)
    try:
        stage(number)
    except GpureportError:
        return ""
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        ours = [each for each in traceback.extract_tb(error.__traceback__) if str(_ROOT) in each.filename]
        where = f"{Path(ours[-1].filename).relative_to(_ROOT)}:{ours[-1].lineno}" if ours else "elsewhere"
        return f"{stage.__name__}: {type(error).__name__} at {where}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
    return ""


def main(options: argparse.Namespace) -> int:
    """Drive recordings through all stages and print what went wrong; return the exit status."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _endless)
    warnings.simplefilter("error")
    found: defaultdict[str, list[int]] = defaultdict(list)
    done: Counter[str] = Counter()
    began = process_time()
    for number in range(options.first, options.first + options.trials):
        for stage in STAGES:
            done[stage.__name__] += 1
            if said := fault(stage, number):
                sys.stdout.write(f"recording {number}, {said}\n")
                sys.stdout.flush()
                found[said.split(": ")[1]].append(number)
                break
        if (number + 1) % options.every == 0:
            each = 1000 * (process_time() - began) / sum(done.values()) * len(STAGES)
            sys.stdout.write(
                f"up to {number}: {each:.0f} ms of the processor each; offending {sum(map(len, found.values()))}\n"
            )
            sys.stdout.flush()
    for key, numbers in found.items():
        sys.stdout.write(f"{len(numbers)} times {key}: {', '.join(map(str, numbers[:10]))}\n")
    sys.stdout.write(f"recordings {options.first} to {options.first + options.trials - 1}: {dict(done)}\n")
    if options.trials == 1 and found:
        for stage in STAGES:
            stage(options.first)
    return 1 if found else 0


def _endless(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"not done after {PATIENCE} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first recording")
    parser.add_argument("--every", type=int, default=500, help="recordings from one line of progress to the next")
    sys.exit(main(parser.parse_args()))

"""Reads damaged logs one by one in a process of their own and measures each: time of the processor, memory."""

import ctypes
import gc
import signal
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.families import family

MIB = 2**20
SECONDS = 1.0
"""A log of up to `mutations.LARGEST` bytes takes no longer, in time of the processor."""
PATIENCE = 120
"""Seconds of the clock after which a case is held to be endless."""

_KEPT_FOR = 50
"""Cases for which the process keeps freed memory."""


def allowed(size: int) -> int:
    """Return the bytes of memory that reading a log of a size may take beyond the idle process."""
    return 64 * MIB + 10 * size


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How one case ended, and what it took."""

    form: str
    number: int
    size: int
    """Bytes of the damaged log."""
    ending: str
    unexpected: bool
    """Whether it ended in an exception that is not the project's own."""
    seconds: float
    """Time of the processor, of all threads."""
    over: int
    """Bytes of memory at the peak beyond those of the idle process."""

    @property
    def offends(self) -> bool:
        """Whether it ended as no log may, or took more than one may."""
        return self.unexpected or self.seconds > SECONDS or self.over > allowed(self.size)

    def __str__(self) -> str:
        """Return it in a line."""
        taken = f"{self.seconds:.3f} s of the processor, {self.over / MIB:.1f} MiB over idle"
        return f"{self.form} case {self.number} ({self.size:,} bytes): {self.ending}; {taken}"


@dataclass(slots=True, kw_only=True)
class Tally:
    """How the cases of a form ended, and the worst of them."""

    endings: Counter[str] = field(default_factory=Counter)
    slowest: Case | None = None
    largest: Case | None = None
    offending: list[Case] = field(default_factory=list)
    left: int = 0
    """Bytes the process held more after its last case than when it was idle; the most of several processes."""

    def add(self, case: Case) -> None:
        """Count a case in."""
        self.endings[case.ending] += 1
        self._worst(case, case)
        if case.offends:
            self.offending.append(case)

    def merge(self, other: "Tally") -> None:
        """Count in what another process saw."""
        self.endings += other.endings
        if other.slowest is not None and other.largest is not None:
            self._worst(other.slowest, other.largest)
        self.offending += other.offending
        self.left = max(self.left, other.left)

    def _worst(self, slow: Case, large: Case) -> None:
        self.slowest = max(self.slowest or slow, slow, key=lambda case: case.seconds)
        self.largest = max(self.largest or large, large, key=lambda case: case.over)


def memory(what: str) -> int:
    """Return bytes of memory of this process as Linux counts them: `VmRSS` now, `VmHWM` at the peak."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(what))
    return int(line.split()[1]) * 1024


def measured(form: str, numbers: Iterable[int], folder: Path) -> Tally:
    """Read the cases of these numbers, each once.

    The process counts as idle when it has read an undamaged log of the form, so that its modules are loaded, and has
    collected its garbage. What the C library keeps of freed memory is given back every so many cases, so that little
    of one case counts against the next ones.
    """
    its, own = family(form)
    path = folder / "log"
    path.write_bytes(its.seeds(own)[0])
    its.ending(path, own, 0)
    gc.collect()
    idle = memory("VmRSS")
    tally = Tally()
    give_back = ctypes.CDLL(None).malloc_trim
    signal.signal(signal.SIGALRM, _endless)
    for number in numbers:
        path.write_bytes(its.mutated(own, number))
        tally.add(_read(form, number, path, idle))
        if number % _KEPT_FOR == 0:
            give_back(0)
    gc.collect()
    tally.left = memory("VmRSS") - idle
    return tally


def _read(form: str, number: int, path: Path, idle: int) -> Case:
    its, own = family(form)
    unexpected = False
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this case from here on
    started = time.process_time()
    signal.alarm(PATIENCE)
    try:
        ending = its.ending(path, own, number)
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        ending, unexpected = f"UNEXPECTED {type(error).__name__}: {str(error)[:200]}", True
    finally:
        signal.alarm(0)
    return Case(
        form=form,
        number=number,
        size=path.stat().st_size,
        ending=ending,
        unexpected=unexpected,
        seconds=time.process_time() - started,
        over=memory("VmHWM") - idle,
    )


def _endless(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"not read after {PATIENCE} s")

"""What a process costs. As a module it runs a command and prints that as JSON.

It is a process of its own because the system counts what its parent held before it began as a child's memory.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took: seconds on the clock and of processors, and bytes of memory at most."""

    wall: float
    cpu: float
    memory: int


def of(command: list[str]) -> Cost:
    """Run a command and return what it took; what it prints is dropped."""
    own = [sys.executable, "-m", "tests.benchmarks.cost", *command]
    printed = subprocess.run(own, stdout=subprocess.PIPE, check=True).stdout
    content: dict[str, Any] = json.loads(printed)
    return Cost(**content)


def _measured(command: list[str]) -> Cost:
    begin = time.perf_counter()
    # an installed package is compiled, as those of the peers are
    compiling = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=compiling)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    wall = time.perf_counter() - begin
    return Cost(wall=wall, cpu=used.ru_utime + used.ru_stime, memory=used.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_measured(sys.argv[1:]))))

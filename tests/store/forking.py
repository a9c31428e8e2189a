"""The program in processes forked from one that has done the imports, so that hundreds of them take seconds.

Run as a module it is that process: it takes an `Order` a line as JSON and answers with an `Outcome` for each process.
"""

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.faults.fault import Fault, arm_fault, count_readings, set_clock_back, stop_clock
from tests.support.program import Outcome

ROOT = Path(__file__).parents[2]
_PATIENCE = 120
"""Seconds after which a process is taken to hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    arguments: Sequence[str]
    file_size: int | None = None
    folder: str = ""
    fault: Fault | None = None
    log: str = ""
    clock: int | None = None
    clock_back: tuple[float, int] = (0.0, 0)
    readings: str = ""
    modules: str = ""


class Forks:
    def __init__(self, folder: Path, library: Path | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if library is not None:
            environment |= {"LD_PRELOAD": str(library), "MPLBACKEND": "agg"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.forking"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, *orders: Order) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([asdict(order) for order in orders]) + "\n")
        self._process.stdin.flush()

    def ended(self) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def result(self) -> list[Outcome]:
        assert self._process.stdout is not None
        return [Outcome(**entry) for entry in json.loads(self._process.stdout.readline())]

    def run(self, order: Order) -> Outcome:
        self.begin(order)
        (ended,) = self.result()
        return ended

    def warm_up(self, folder: Path, *commands: Sequence[str]) -> None:
        """Import in the process that forks what commands import, none of which draws; threads do not fork."""
        for number, command in enumerate(commands):
            ended = self.run(Order(arguments=command, folder=str(folder), modules=str(folder / f"{number}.modules")))
            assert ended.code == 0, (command, ended)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _child(order: Order, out: int, err: int) -> NoReturn:
    from gpureport.cli.main import main

    # one that hangs ends, and its test with it
    signal.alarm(_PATIENCE)
    # what a library prints by itself is seen as well
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = os.fdopen(out, "w"), os.fdopen(err, "w")
    sys.argv = ["gpureport", *order.arguments]
    if order.file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_size, order.file_size))
    _set_scene(order)
    code: Any = 70
    try:
        main([*order.arguments])
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    finally:
        if order.modules:
            Path(order.modules).write_text("\n".join(sys.modules))
        if order.readings:
            Path(order.readings).write_text(str(count_readings()))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


def _set_scene(order: Order) -> None:
    if order.folder:
        os.chdir(order.folder)
        tempfile.tempdir = str(Path(order.folder, "tmp"))
    if order.clock is not None:
        stop_clock(order.clock)
    if order.clock_back[0]:
        set_clock_back(*order.clock_back)
    if order.fault is not None:
        arm_fault(order.fault, Path(order.folder), Path(order.log))


def _fork(order: Order) -> tuple[int, int, int]:
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(order, out[1], err[1])
    os.close(out[1])
    os.close(err[1])
    return pid, out[0], err[0]


def _import_modules(path: Path) -> None:
    """Import the modules that a child imported, as far as they can be imported alone."""
    for name in path.read_text().split():
        with suppress(Exception):
            importlib.import_module(name)


def _run(orders: Sequence[Order]) -> list[Outcome]:
    children = [_fork(order) for order in orders]
    results = []
    for order, (pid, out, err) in zip(orders, children, strict=True):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with os.fdopen(out) as one, os.fdopen(err) as other:
            results.append(Outcome(code=code, out=one.read(), err=other.read()))
        if order.modules:
            _import_modules(Path(order.modules))
    return results


def serve() -> None:
    """Import what every command needs, then take orders until there are no more."""
    import gpureport.cli.main  # noqa: F401 - in the forking process alone

    for line in sys.stdin:
        entries = json.loads(line)
        results = _run([Order(**each | {"fault": each["fault"] and Fault(**each["fault"])}) for each in entries])
        sys.stdout.write(json.dumps([asdict(result) for result in results]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()

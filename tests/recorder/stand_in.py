"""A program that plays `nvidia-smi`: it repeats a log of `--query-gpu` as if the GPUs were here now.

`install_stand_in` puts it into a folder as `nvidia-smi`. It answers in the real one's form: `--query-gpu` (with
`--format`, `-l`, `-lms`, `-f`), `--help-query-gpu`, `dmon` (with `-h`, `-s`, `-o`, `-d`, `-c`, `--gpm-metrics`).
Each tick of the log is stamped with the time now; the log begins again at its end. Like the real one, it buffers
blocks of 4096 bytes unless it writes to a terminal. Environment variables set what it plays:

- STAND_IN_LOG: the log, plain or gzipped; fields it lacks get a constant or `[N/A]`;
- STAND_IN_UNKNOWN: fields, separated by commas, which this driver does not know by that name;
- STAND_IN_REFUSED: fields that its help lists and its query refuses;
- STAND_IN_FAULT: what happens after N ticks, as `dies:N`, `hangs:N`, `half-line:N`, `lost:N` or `clock-back:N`;
- STAND_IN_PAST: anything, to play the whole log at once first, as if it had been recorded until now;
- STAND_IN_DMON: `no-gpm` for a driver without --gpm-metrics, `absent` for one whose dmon fails.
"""

import gzip
import io
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_SAMPLE = Path(__file__).resolve().parents[2] / "sample_logs/healthy/nvidia-smi.csv"
_BLOCK = 4096
_DMON_ROWS = 44
"""Rows after which dmon repeats its header."""
_HOUR = 3600.0


def _read_table(name: str) -> Iterator[list[str]]:
    yield from (line.split("\t") for line in Path(__file__).resolve().with_name(name).read_text().splitlines()[1:])


# canonical name: aliases, unit, value where the log has none
FIELDS = {
    name: (tuple(filter(None, aliases.split(","))), unit, value)
    for name, aliases, unit, value in _read_table("fields.tsv")
}
_CANONICAL = {name: field for field, (aliases, _, _) in FIELDS.items() for name in (field, *aliases)}
_DMON = list(_read_table("dmon.tsv"))
_GPM = {"1": "gract", "2": "smutil", "3": "smocc", "5": "mmaact", "10": "dram", "12": "fp32", "13": "fp16"}
"""Columns of --gpm-metrics; all play the utilization of the GPU."""

Tick = list[dict[str, str]]


def install_stand_in(folder: Path, log: Path | None = None) -> Path:
    """Write an executable `nvidia-smi` into a folder that plays a log; the caller puts the folder on PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    played = f"STAND_IN_LOG=${{STAND_IN_LOG:-{shlex.quote(str(log))}}} " if log else ""
    call = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(Path(__file__).resolve()))}"
    program.write_text(f'#!/bin/sh\n{played}exec {call} "$@"\n')
    program.chmod(0o755)
    return program


def read_ticks(path: Path) -> list[Tick]:
    """Return the rows of a log, by canonical field and without units, grouped by tick."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    with io.StringIO(content.decode(errors="replace")) as lines:
        return list(_group_ticks(_read_rows(lines)))


def _read_rows(lines: Iterator[str] | io.TextIOBase) -> Iterator[dict[str, str]]:
    header: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.replace("\0", "").split(",")]
        names = [re.sub(r" ?\[.*\]$", "", cell) for cell in cells]
        if any(name in _CANONICAL for name in names[:3]):
            header = names
        elif header and len(cells) == len(header) and line.endswith("\n"):
            yield {
                _CANONICAL[name]: re.sub(r"(?<=\d) (%|[A-Za-z]+)$", "", cell)
                for name, cell in zip(header, cells, strict=True)
                if name in _CANONICAL
            }


def _group_ticks(rows: Iterator[dict[str, str]]) -> Iterator[Tick]:
    tick: Tick = []
    seen: set[str] = set()
    for row in rows:
        gpu = row.get("uuid") or row.get("pci.bus_id") or row.get("index") or ""
        if gpu in seen:
            yield tick
            tick, seen = [], set()
        seen.add(gpu)
        tick.append(row)
    if tick:
        yield tick


class _Output:
    def __init__(self, path: str | None) -> None:
        # open until the program ends; a stream is a number, and no path
        self._file = open(path or 1, "wb", _BLOCK)  # noqa: SIM115 - as said above
        self._unbuffered = self._file.isatty()

    def write(self, text: str) -> None:
        self._file.write(text.encode())
        if self._unbuffered:
            self._file.flush()

    def end(self, code: int) -> None:
        self._file.flush()
        # no flush besides this one, as in the C library
        os._exit(code)


class _Player:
    def __init__(self, output: _Output) -> None:
        self._ticks = read_ticks(Path(os.environ.get("STAND_IN_LOG") or _SAMPLE))
        fault, _, after = os.environ.get("STAND_IN_FAULT", "").partition(":")
        self._fault, self._after = fault, int(after or 0)
        self._output = output

    def play(self, seconds: float, count: int = 0) -> Iterator[tuple[float, Tick]]:
        """Yield the time now and the rows of a tick, one every so many seconds; without seconds, one tick."""
        past = len(self._ticks) * seconds if os.environ.get("STAND_IN_PAST") else 0.0
        begun = time.monotonic() - past
        number = 0
        while True:
            if self._fault and number >= self._after:
                self._fail()
            shift = -_HOUR if self._fault == "clock-back" and number >= self._after else 0.0
            late = min(0.0, begun + number * seconds - time.monotonic()) if past else 0.0
            yield time.time() + late + shift, self._ticks[number % len(self._ticks)]
            number += 1
            if not seconds or number == count:
                return
            time.sleep(max(0.0, begun + number * seconds - time.monotonic()))

    def _fail(self) -> None:
        if self._fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "hangs":
            signal.pause()
        if self._fault == "half-line":
            self._output.write("2026/07/01 10:0")
            self._output.end(1)
        if self._fault == "lost":
            message = "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost."
            self._output.write(f"{message}  Reboot the system to recover this GPU\n")
            self._output.end(15)


def _names_in(variable: str) -> set[str]:
    return set(filter(None, os.environ.get(variable, "").split(",")))


def _cell(row: dict[str, str], field: str, place: int) -> str:
    constant = FIELDS[field][2].format(place)
    return row.get(field, row.get("enforced.power.limit", constant) if field == "power.default_limit" else constant)


def _query(asked: str, form: str, seconds: float, output: _Output) -> None:
    unknown = _names_in("STAND_IN_UNKNOWN") | _names_in("STAND_IN_REFUSED")
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in _CANONICAL or name in unknown:
            output.write(f'Field "{name}" is not a valid field to query.\n\n')
            output.end(2)
    fields = [_CANONICAL[name] for name in names]
    units = [FIELDS[field][1] for field in fields]
    if "noheader" not in form:
        output.write(", ".join(f"{f} [{u}]" if u else f for f, u in zip(fields, units, strict=True)) + "\n")
    for now, tick in _Player(output).play(seconds):
        clock = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1000):03d}"
        for place, row in enumerate(tick):
            cells = [clock if field == "timestamp" else _cell(row, field, place) for field in fields]
            if "nounits" not in form:
                cells = [f"{c} {u}" if u and not c.startswith("[") else c for c, u in zip(cells, units, strict=True)]
            output.write(", ".join(cells) + "\n")
    output.end(0)


def _help_query(output: _Output) -> None:
    output.write('List of valid properties to query for the switch "--query-gpu":\n\n')
    unknown = _names_in("STAND_IN_UNKNOWN")
    for field, (aliases, _, _) in FIELDS.items():
        names = [name for name in (field, *aliases) if name not in unknown]
        if field == "memory.total":
            output.write("Section about memory properties\nWhat the memory of the GPU holds.\n\n")
        if names:
            output.write(" or ".join(f'"{name}"' for name in names) + f"\nThe {field} of the GPU.\n\n")
    output.end(0)


def _dmon(arguments: Sequence[str], output: _Output) -> None:
    setting = os.environ.get("STAND_IN_DMON", "")
    if setting == "absent":
        output.write("dmon is not supported on this system.\n")
        output.end(3)
    if "-h" in arguments:
        gpm_help = "" if setting == "no-gpm" else "    [--gpm-metrics]: Comma separated IDs of GPM metrics to show.\n"
        output.write(f"    GPU statistics are displayed in scrolling format.\n\n    Usage: nvidia-smi dmon\n{gpm_help}")
        output.end(0)
    options = _parse_options(arguments)
    gpm = [_GPM.get(number, f"id={number}") for number in filter(None, options.get("--gpm-metrics", "").split(","))]
    if gpm and setting == "no-gpm":
        output.write('Invalid combination of input arguments. Please run "nvidia-smi dmon -h" for help.\n')
        output.end(1)
    _write_dmon(options, gpm, output)


def _write_dmon(options: dict[str, str], gpm: Sequence[str], output: _Output) -> None:
    columns = [column for letter, *column in _DMON if letter in options.get("-s", "puc")]
    date, unit, clock = {
        "DT": ("Date        Time         ", "YYYYMMDD    HH:MM:SS     ", " %Y%m%d    %H:%M:%S     "),
        "T": ("Time         ", "HH:MM:SS     ", " %H:%M:%S     "),
    }.get(options.get("-o", ""), (" ", " ", "  "))
    header = f"#{date}gpu" + "".join(f"{n:>7}" for n, _, _ in columns) + "".join(f"{n:>11}" for n in gpm) + " \n"
    header += f"#{unit}Idx" + "".join(f"{u:>7}" for _, u, _ in columns) + "".join(f"{'GPM:%':>11}" for _ in gpm) + " \n"
    rows = 0
    for now, tick in _Player(output).play(float(options.get("-d", "1")), int(options.get("-c", "0"))):
        for place, row in enumerate(tick):
            if rows % _DMON_ROWS == 0:
                output.write(header)
            rows += 1
            # GPM compares two samples
            busy = _cell(row, "utilization.gpu", place) if rows > len(tick) else "-"
            values = [_dmon_cell(row, source, place) for _, _, source in columns]
            output.write(time.strftime(clock, time.localtime(now)) + f"{_cell(row, 'index', place):>3}")
            output.write("".join(f"{value:>7}" for value in values) + "".join(f"{busy:>11}" for _ in gpm) + " \n")
    output.end(0)


def _dmon_cell(row: dict[str, str], source: str, place: int) -> str:
    value = _cell(row, source, place) if source in FIELDS else source
    return "-" if value.startswith("[") else value.split(".")[0]


def _parse_options(arguments: Sequence[str]) -> dict[str, str]:
    """Return options with their values, given as `--name=value` or `-n value`."""
    options: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        options[name] = value if equals else next(words, "")
    return options


def main(arguments: Sequence[str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if arguments[:1] == ["dmon"]:
        _dmon(arguments[1:], _Output(_parse_options(arguments[1:]).get("-f")))
    if arguments[:1] == ["--help-query-gpu"]:
        _help_query(_Output(None))
    options = _parse_options(arguments)
    output = _Output(options.get("-f"))
    if "--query-gpu" not in options or "csv" not in options.get("--format", ""):
        output.write("The stand-in knows --query-gpu with --format=csv, --help-query-gpu and dmon.\n")
        output.end(1)
    seconds = float(options.get("-lms") or "0") / 1000 or float(options.get("-l") or "0")
    _query(options["--query-gpu"], options["--format"], seconds, output)


if __name__ == "__main__":
    main(sys.argv[1:])

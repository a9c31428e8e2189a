"""Prints what the report of a long run costs beside pages of its series by Plotly and Bokeh and WeasyPrint's PDF of it.

Run by hand: `python -m tests.benchmarks.report [--hours 24] [--rounds 3] [--environments DIR]`. The run is 8 GPUs, a
sample a second, 8 metrics; the others draw at most 2000 points a line, the smallest and largest of each stretch, and
analyse nothing. Each has an environment of its own, made where it is not there; one that pip cannot make is skipped
and said. It needs Chromium, playwright and poppler.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from gpureport import columns
from gpureport.store.store import Store
from tests.benchmarks import cost, log, report_browser, report_peers
from tests.benchmarks.report_browser import Seen
from tests.benchmarks.report_peers import Series

METRICS = (
    "gpu_utilization_ratio",
    "gpu_memory_controller_ratio",
    "gpu_memory_used_bytes",
    "gpu_power_watts",
    "gpu_temperature_celsius",
    "gpu_sm_clock_hertz",
    "gpu_memory_clock_hertz",
    "clock_event_sw_power_cap",
)
POINTS = 2000
OURS = "gpureport"
_ROW = 200
"""More bytes than a row of the log has."""

Costs = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be reached: at most so much of it, in its unit or as a ratio to a peer's."""

    name: str
    reached: float
    most: float
    unit: str

    def __str__(self) -> str:
        """Return the line."""
        verdict = "met" if self.reached <= self.most else "MISSED"
        return f"  {self.name:44}{self.reached:10.3g} {self.unit:12} goal {self.most:7.3g}  {verdict}"


def recorded(folder: Path, hours: float) -> tuple[Path, int]:
    """Write the log of a run, read it into a store, and return the store and the rows."""
    rows = round(hours * 3600) * log.GPUS
    log.write(folder / "whole.csv", (rows + 1) * _ROW)
    source = folder / "nvidia-smi.csv"
    with (folder / "whole.csv").open("rb") as whole, source.open("wb") as file:
        file.writelines(islice(whole, rows + 1))
    (folder / "whole.csv").unlink()
    ingest = [sys.executable, "-m", "gpureport", "ingest", str(source), "--store", str(folder / "store")]
    subprocess.run(ingest, check=True, capture_output=True)
    return folder / "store", rows


def drawn(store: Path) -> tuple[str, Series, float]:
    """Return the run's id, what the others are to draw of it, and its seconds."""
    entry = Store(store).entries()[0]
    devices = Store(store).read(entry).by_device()
    begin, end = entry.run.started, entry.run.ended
    series: dict[str, dict[str, tuple[list[float], list[float | None]]]] = {}
    for metric in METRICS:
        for device, table in devices.items():
            seconds = (columns.integers(table["timestamp"]) - begin) / 1e6
            series.setdefault(metric, {})[device] = thinned(seconds, columns.floats(table[metric]))
    return entry.run.id, series, (end - begin) / 1e6


def thinned(seconds: columns.FloatArray, values: columns.FloatArray) -> tuple[list[float], list[float | None]]:
    """Return the smallest and the largest value of each of 1000 stretches, in the order of time."""
    kept: set[int] = {0, len(values) - 1}
    for part in np.array_split(np.flatnonzero(~np.isnan(values)), POINTS // 2 - 1):
        if len(part):
            kept |= {int(part[np.argmin(values[part])]), int(part[np.argmax(values[part])])}
    places = np.array(sorted(kept))
    return seconds[places].tolist(), [None if np.isnan(value) else float(value) for value in values[places]]


def environment(folder: Path, peer: str) -> str | None:
    """Return the interpreter that has a peer, after having made it where it is not there; None where pip cannot."""
    python = folder / peer / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / peer)], check=True)
    installed = subprocess.run([str(python), "-m", "pip", "install", "-q", peer], check=False, capture_output=True)
    return None if installed.returncode else str(python)


def commands(folder: Path, run: str, environments: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each thing to make and the command that makes it."""
    ours = [sys.executable, "-m", "gpureport", "report", "--quiet", run, "--store", str(folder / "store"), "-o"]
    yield f"{OURS}.html", [*ours, str(folder / f"{OURS}.html")]
    yield f"{OURS}.pdf", [*ours, str(folder / f"{OURS}.pdf")]
    for peer in report_peers.PEERS:
        if (python := environment(environments, peer)) is None:
            say(f"  {peer}: skipped, pip cannot install it here")
            continue
        drawing = [python, report_peers.__file__, peer]
        if peer == "weasyprint":
            yield f"{peer}.pdf", [*drawing, str(folder / f"{OURS}.html"), str(folder / f"{peer}.pdf")]
            continue
        yield f"{peer}.html", [*drawing, str(folder / "series.json"), str(folder / f"{peer}.html")]
        if peer == "plotly":
            yield "empty.html", [*drawing, str(folder / "nothing.json"), str(folder / "empty.html")]


def pages(folder: Path, rounds: int, seconds: float) -> dict[str, Seen]:
    """Return what the browser made of each page: medians, the pages in turn."""
    tools = [tool for tool in report_browser.READY if (folder / f"{tool}.html").exists()]
    taken: dict[str, list[Seen]] = {tool: [] for tool in tools}
    with report_browser.chromium() as browser:
        for _ in range(rounds):
            for tool in tools:
                lines = len(METRICS) * log.GPUS
                path = folder / f"{tool}.html"
                taken[tool].append(report_browser.seen(browser, tool, path, series=lines, seconds=seconds))
    return {tool: _typical(each) for tool, each in taken.items()}


def _typical(each: list[Seen]) -> Seen:
    return Seen(
        paint=median(one.paint for one in each),
        ready=median(one.ready for one in each),
        zoom=median(one.zoom for one in each),
        script=each[0].script,
        style=each[0].style,
        requests=max(one.requests for one in each),
        messages=max(one.messages for one in each),
    )


def paper(path: Path) -> tuple[int, int, bool]:
    """Return how many fonts of a PDF are not embedded, how many raster images it has, and whether it is tagged."""

    def told(*command: str) -> list[str]:
        return subprocess.run([*command, str(path)], check=True, capture_output=True, text=True).stdout.splitlines()

    fonts = [line.split() for line in told("pdffonts")[2:]]
    loose = sum(cells[-5] != "yes" for cells in fonts)
    tagged = any(line.split() == ["Tagged:", "yes"] for line in told("pdfinfo"))
    return loose, len(told("pdfimages", "-list")[2:]), tagged


def goals(folder: Path, walls: Costs, found: Mapping[str, Seen]) -> Iterator[Goal]:
    """Yield every goal that can be told with the peers that are there."""
    ours, size = found[OURS], (folder / f"{OURS}.html").stat().st_size
    yield Goal(name="page", reached=size / 1e6, most=4, unit="MB")
    if (empty := folder / "empty.html").exists():
        yield Goal(name="page", reached=size / empty.stat().st_size, most=0.75, unit="x empty Plotly")
    yield Goal(name="script", reached=ours.script / 1000, most=15, unit="kB")
    yield Goal(name="style sheet", reached=ours.style / 1000, most=8, unit="kB")
    yield Goal(name="requests beside the page", reached=ours.requests, most=0, unit="")
    yield Goal(name="messages on the console", reached=ours.messages, most=0, unit="")
    yield Goal(name="linked zoom", reached=ours.zoom, most=100, unit="ms")
    for tool, seen in found.items():
        if tool != OURS:
            yield Goal(name="linked zoom", reached=ours.zoom / seen.zoom, most=1 / 5, unit=f"x {tool}")
    if plotly := found.get("plotly"):
        yield Goal(name="first contentful paint", reached=ours.paint / plotly.paint, most=1 / 5, unit="x plotly")
        yield Goal(name="charts ready", reached=ours.ready / plotly.ready, most=1 / 3, unit="x plotly")
    if bokeh := walls.get("bokeh.html"):
        yield Goal(name="build, analysis included", reached=walls[f"{OURS}.html"] / bokeh, most=1 / 2, unit="x bokeh")
    if other := walls.get("weasyprint.pdf"):
        yield Goal(
            name="PDF, analysis included", reached=walls[f"{OURS}.pdf"] / other, most=1 / 10, unit="x weasyprint"
        )
    loose, raster, tagged = paper(folder / f"{OURS}.pdf")
    yield Goal(name="PDF: fonts not embedded", reached=loose, most=0, unit="")
    yield Goal(name="PDF: raster images", reached=raster, most=0, unit="")
    yield Goal(name="PDF: without tags", reached=not tagged, most=0, unit="")


def made(things: Mapping[str, list[str]], rounds: int) -> dict[str, float]:
    """Return the median seconds each took, by the clock, the commands in turn."""
    taken: dict[str, list[float]] = {name: [] for name in things}
    for _ in range(rounds):
        for name, command in things.items():
            try:
                taken[name].append(cost.of(command).wall)
            except subprocess.CalledProcessError:
                say(f"  {name}: skipped, its command failed")
    return {name: median(each) for name, each in taken.items() if each}


def compare(folder: Path, hours: float, rounds: int, environments: Path) -> None:
    """Make everything, measure it, and print it line by line."""
    store, rows = recorded(folder, hours)
    run, series, seconds = drawn(store)
    (folder / "series.json").write_text(json.dumps(series))
    (folder / "nothing.json").write_text("{}")
    say(f"{hours:g} h, {log.GPUS} GPUs, {rows} rows, {len(METRICS)} metrics, medians of {rounds}")
    walls = made(dict(commands(folder, run, environments)), rounds)
    for name, wall in walls.items():
        say(f"  {name:18} {(folder / name).stat().st_size / 1e6:7.2f} MB {wall:8.2f} s")
    found = pages(folder, rounds, seconds)
    for tool, seen in found.items():
        times = f"paint {seen.paint:7.0f} ms, ready {seen.ready:7.0f} ms, zoom {seen.zoom:6.0f} ms"
        say(f"  {tool:18} {times}, script {seen.script / 1000:.1f} kB, style {seen.style / 1000:.1f} kB")
    for goal in goals(folder, walls, found):
        say(str(goal))


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - its output is its use


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--environments", type=Path, help="folder of the others' environments, kept")
    given = parser.parse_args()
    if shutil.which("chromium") is None or shutil.which("pdffonts") is None:
        raise SystemExit("chromium and poppler-utils are needed")
    with TemporaryDirectory() as name:
        compare(Path(name), given.hours, given.rounds, given.environments or Path(name) / "environments")


if __name__ == "__main__":
    main()

"""Prints what the report of a long run costs beside pages of its series by Plotly and Bokeh and WeasyPrint's PDF of it.

Run by hand: `python -m tests.benchmarks.report [--runs 3] [--hours 24] [--rounds 3] [--environments DIR]`. A run is 8
GPUs, a sample a second, 8 metrics; the others draw at most 2000 points a line, the smallest and largest of each
stretch, and analyse nothing. Each has an environment of its own, made where it is not there; one that cannot be made
is skipped and said. It needs Chromium, playwright and poppler, and npm for uPlot.

The first goals of building are by the clock. Those of the processor's time count what threads do side by side, and
what else the machine does counts less in them. A PDF set alone is what the PDF takes beyond the same report as JSON.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from gpureport import columns
from gpureport.store.store import Store
from tests.benchmarks import cost, log, report_browser, report_peers
from tests.benchmarks.cost import Cost
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
UPLOT = "uplot@1.6.32"
_ROW = 200
"""More bytes than a row of the log has."""

_BLOCK_SECONDS = 32_768
"""What a block of the log lasts."""

Costs = Mapping[str, Cost]


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


def recorded(folder: Path, hours: float, runs: int) -> tuple[Path, int]:
    """Write the logs of runs, each a step, read them into a store, and return the store and the rows of a run."""
    rows = round(hours * 3600) * log.GPUS
    for run in range(runs):
        log.write(folder / "whole.csv", (rows + 1) * _ROW, first=run * ceil(hours * 3600 / _BLOCK_SECONDS))
        source = folder / "nvidia-smi.csv"
        with (folder / "whole.csv").open("rb") as whole, source.open("wb") as file:
            file.writelines(islice(whole, rows + 1))
        (folder / "whole.csv").unlink()
        ingest = [sys.executable, "-m", "gpureport", "ingest", str(source), "--store", str(folder / "store")]
        subprocess.run([*ingest, "--step", f"step {run}"], check=True, capture_output=True)
        source.unlink()
    return folder / "store", rows


def drawn(store: Path) -> tuple[list[str], Series, float]:
    """Return the runs' ids, what the others are to draw of them, a chart a metric and run, and the seconds of one."""
    series: dict[str, dict[str, tuple[list[float], list[float | None]]]] = {}
    entries = sorted(Store(store).entries(), key=lambda entry: entry.run.started)
    for entry in entries:
        for device, table in Store(store).read(entry).by_device().items():
            seconds = (columns.integers(table["timestamp"]) - entry.run.started) / 1e6
            for metric in METRICS:
                charts = series.setdefault(f"{metric} {entry.run.step}", {})
                charts[device] = thinned(seconds, columns.floats(table[metric]))
    run = entries[0].run
    return [entry.run.id for entry in entries], series, (run.ended - run.started) / 1e6


def thinned(seconds: columns.FloatArray, values: columns.FloatArray) -> tuple[list[float], list[float | None]]:
    """Return the smallest and the largest value of each of 1000 stretches, in the order of time."""
    kept: set[int] = {0, len(values) - 1}
    for part in np.array_split(np.flatnonzero(~np.isnan(values)), POINTS // 2 - 1):
        if len(part):
            kept |= {int(part[np.argmin(values[part])]), int(part[np.argmax(values[part])])}
    places = np.array(sorted(kept))
    return seconds[places].tolist(), [None if np.isnan(value) else float(value) for value in values[places]]


def environment(folder: Path, peer: str, beside: Path) -> str | None:
    """Return the interpreter that makes a peer's page, after having made it where it is not there; None where not.

    Args:
        folder: of all environments.
        peer: which.
        beside: where a peer that is a script has to lie.
    """
    if peer == "uplot":
        return sys.executable if _packed(folder / peer, beside) else None
    python = folder / peer / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / peer)], check=True)
    installed = subprocess.run([str(python), "-m", "pip", "install", "-q", peer], check=False, capture_output=True)
    return None if installed.returncode else str(python)


def _packed(folder: Path, beside: Path) -> bool:
    """Fetch the files of uPlot where they are not there and lay them out; return whether they are."""
    folder.mkdir(parents=True, exist_ok=True)
    if (npm := shutil.which("npm")) and not list(folder.glob("*.tgz")):
        subprocess.run([npm, "pack", UPLOT], cwd=folder, check=False, capture_output=True)
    for archive in folder.glob("*.tgz"):
        with tarfile.open(archive) as members:
            for name in report_peers.UPLOT:
                member = members.extractfile(f"package/dist/{name}")
                (beside / name).write_bytes(member.read() if member else b"")
        return True
    return False


def commands(folder: Path, runs: Sequence[str], environments: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each thing to make and the command that makes it."""
    ours = [sys.executable, "-m", "gpureport", "report", "--quiet", *runs, "--store", str(folder / "store"), "-o"]
    for extension in ("html", "pdf", "json"):
        yield f"{OURS}.{extension}", [*ours, str(folder / f"{OURS}.{extension}")]
    for peer in report_peers.PEERS:
        if (python := environment(environments, peer, folder)) is None:
            say(f"  {peer}: skipped, it cannot be installed here")
            continue
        drawing = [python, report_peers.__file__, peer]
        if peer == "weasyprint":
            yield f"{peer}.pdf", [*drawing, str(folder / f"{OURS}.html"), str(folder / f"{peer}.pdf")]
            continue
        yield f"{peer}.html", [*drawing, str(folder / "series.json"), str(folder / f"{peer}.html")]
        if peer == "plotly":
            yield "empty.html", [*drawing, str(folder / "nothing.json"), str(folder / "empty.html")]


def pages(folder: Path, rounds: int, seconds: float, lines: int) -> dict[str, Seen]:
    """Return what the browser made of each page of so many lines: medians, the pages in turn."""
    tools = [tool for tool in report_browser.READY if (folder / f"{tool}.html").exists()]
    taken: dict[str, list[Seen]] = {tool: [] for tool in tools}
    with report_browser.chromium() as browser:
        for _ in range(rounds):
            for tool in tools:
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


def goals(folder: Path, costs: Costs, found: Mapping[str, Seen], runs: int) -> Iterator[Goal]:
    """Yield every goal that can be told with the peers that are there."""
    ours, size = found[OURS], (folder / f"{OURS}.html").stat().st_size
    yield Goal(name="page", reached=size / 1e6, most=4 if runs == 1 else 10, unit="MB")
    if runs == 1 and (empty := folder / "empty.html").exists():
        yield Goal(name="page", reached=size / empty.stat().st_size, most=0.75, unit="x empty Plotly")
    yield Goal(name="script", reached=ours.script / 1000, most=15, unit="kB")
    yield Goal(name="style sheet", reached=ours.style / 1000, most=8, unit="kB")
    yield Goal(name="requests beside the page", reached=ours.requests, most=0, unit="")
    yield Goal(name="messages on the console", reached=ours.messages, most=0, unit="")
    yield Goal(name="linked zoom", reached=ours.zoom, most=100, unit="ms")
    for tool, seen in found.items():
        if tool in {"plotly", "bokeh"}:
            yield Goal(name="linked zoom", reached=ours.zoom / seen.zoom, most=1 / 5, unit=f"x {tool}")
    if plotly := found.get("plotly"):
        yield Goal(name="first contentful paint", reached=ours.paint / plotly.paint, most=1 / 5, unit="x plotly")
        yield Goal(name="charts ready", reached=ours.ready / plotly.ready, most=1 / 3, unit="x plotly")
    if uplot := found.get("uplot"):
        yield Goal(name="first contentful paint", reached=ours.paint / uplot.paint, most=1 / 3, unit="x uplot")
    yield from building(costs)
    loose, raster, tagged = paper(folder / f"{OURS}.pdf")
    yield Goal(name="PDF: fonts not embedded", reached=loose, most=0, unit="")
    yield Goal(name="PDF: raster images", reached=raster, most=0, unit="")
    yield Goal(name="PDF: without tags", reached=not tagged, most=0, unit="")


def building(costs: Costs) -> Iterator[Goal]:
    """Yield the goals of making page and PDF, by the clock and of the processor's time."""
    by_clock = {name: each.wall for name, each in costs.items()}
    for how, seconds in (("", by_clock), (", processor", {name: each.cpu for name, each in costs.items()})):
        page, paper, alone = (seconds[f"{OURS}.{extension}"] for extension in ("html", "pdf", "json"))
        if bokeh := seconds.get("bokeh.html"):
            yield Goal(name=f"build, analysis included{how}", reached=page / bokeh, most=1 / 2, unit="x bokeh")
        if other := seconds.get("weasyprint.pdf"):
            yield Goal(name=f"PDF, analysis included{how}", reached=paper / other, most=1 / 10, unit="x weasyprint")
            yield Goal(name=f"PDF set alone{how}", reached=(paper - alone) / other, most=1 / 10, unit="x weasyprint")


def made(things: Mapping[str, list[str]], rounds: int) -> dict[str, Cost]:
    """Return what each took, the commands in turn: the median by the clock, and of the processor's time the least."""
    taken: dict[str, list[Cost]] = {name: [] for name in things}
    for _ in range(rounds):
        for name, command in things.items():
            try:
                taken[name].append(cost.of(command))
            except subprocess.CalledProcessError:
                say(f"  {name}: skipped, its command failed")
    return {
        name: Cost(
            wall=median(one.wall for one in each),
            cpu=min(one.cpu for one in each),
            memory=max(one.memory for one in each),
        )
        for name, each in taken.items()
        if each
    }


def compare(folder: Path, *, runs: int, hours: float, rounds: int, environments: Path) -> None:
    """Make everything, measure it, and print it line by line."""
    store, rows = recorded(folder, hours, runs)
    ids, series, seconds = drawn(store)
    (folder / "series.json").write_text(json.dumps(series))
    (folder / "nothing.json").write_text("{}")
    say(f"{runs} x {hours:g} h, {log.GPUS} GPUs, {rows} rows each, {len(METRICS)} metrics, medians of {rounds}")
    costs = made(dict(commands(folder, ids, environments)), rounds)
    for name, each in costs.items():
        size = (folder / name).stat().st_size / 1e6
        say(f"  {name:18} {size:7.2f} MB {each.wall:8.2f} s by the clock {each.cpu:7.2f} s of the processor")
    found = pages(folder, rounds, seconds, runs * len(METRICS) * log.GPUS)
    for tool, seen in found.items():
        times = f"paint {seen.paint:7.0f} ms, ready {seen.ready:7.0f} ms, zoom {seen.zoom:6.0f} ms"
        say(f"  {tool:18} {times}, script {seen.script / 1000:.1f} kB, style {seen.style / 1000:.1f} kB")
    for goal in goals(folder, costs, found, runs):
        say(str(goal))


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - its output is its use


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--environments", type=Path, help="folder of the others' environments, kept")
    given = parser.parse_args()
    if shutil.which("chromium") is None or shutil.which("pdffonts") is None:
        raise SystemExit("chromium and poppler-utils are needed")
    with TemporaryDirectory() as name:
        compare(
            Path(name),
            runs=given.runs,
            hours=given.hours,
            rounds=given.rounds,
            environments=given.environments or Path(name) / "environments",
        )


if __name__ == "__main__":
    main()

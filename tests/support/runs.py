"""Runs that tests of pages look at: sample logs as a person would read them, and runs made by hand."""

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import gpureport
from gpureport import testing
from gpureport.testing import LogEvent, Quality, Recording, Source, Work, build_page
from tests.support.logs import SAMPLES

CHAIN = tuple(f"input_starved/{step}" for step in ("1-baseline", "2-more-workers", "3-mixed-precision"))
STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
TRAINING_STEPS = SAMPLES / "recorded/training_steps"
UNLIKE = {"recorded", "input_starved", "mapped"}
"""Folders that hold several runs, or need a map."""

FOLDERS = tuple(sorted(path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name not in UNLIKE))
GAP = "\N{NO-BREAK SPACE}"
AMOUNT = re.compile(r"(<)?([-−]?[\d,]+(?:\.\d+)?)(?: ?(%|°C|[mkM]?Wh|[MG]iB|MHz|W|GPU-(?:h|min|s|ms)))?")
SCALES = {"%": 0.01, "MHz": 1e6, "GiB": 2.0**30, "MiB": 2.0**20, "GPU-h": 3600.0, "GPU-min": 60.0, "GPU-ms": 1e-3}
SCALES |= {"mWh": 3.6, "Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9}


@cache
def sample(*folders: str) -> tuple[gpureport.Analysis, ...]:
    return tuple(gpureport.analyze(run) for folder in folders for run in gpureport.read(SAMPLES / folder))


@cache
def recorded_steps(*, repetitions: int = 3) -> tuple[gpureport.Analysis, ...]:
    made = []
    for step in STEPS:
        for run in range(1, repetitions + 1):
            labels = {"name": f"{step}/{run}", "step": step, "work": (32768, "images")}
            made += gpureport.read(TRAINING_STEPS / step / str(run), labels=labels)
    return tuple(map(gpureport.analyze, made))


def run(name: str = "baseline", *, gpus: int = 2, seconds: int = 600, util: Any = 97.0, **series: Any) -> Recording:
    """Return a run of GPUs that work throughout, sampled each second, from a log of its name."""
    shaped = {"util": util, "power": 350.0, "temperature": 60.0, "clock": 1980.0, "memory": 40.0, **series}
    columns: dict[str, Any] = {
        key: [value if isinstance(value, Iterable) else [value] * (seconds + 1)] * gpus for key, value in shaped.items()
    }
    made = testing.recording(model="NVIDIA H100 80GB HBM3", **columns)
    rows = gpus * (seconds + 1)
    source = Source(kind="nvidia_smi", locator=f"{name}.csv", sha256="ab" * 32)
    quality = Quality(lines=rows + 1, rows_kept=rows, headers=1, coverage_ratio=1.0)
    number = sum(place * ord(sign) for place, sign in enumerate(name, 1)) % 2**32
    return with_run(made, name=name, id=f"{number:08x}", sources=(source,), quality=quality)


def with_run(recording: Recording, **fields: Any) -> Recording:
    return replace(recording, run=replace(recording.run, **fields))


def event(kind: str, seconds: float | None, text: str = "", *, line: int = 1, device: str | None = None) -> LogEvent:
    at = None if seconds is None else testing.at(seconds)
    return LogEvent(kind=kind, at=at, line=line, device=device, text=text)


def with_findings(analysis: gpureport.Analysis, *findings: testing.Finding, **fields: Any) -> gpureport.Analysis:
    return replace(analysis, findings=findings, **fields)


def divided(gpus: int = 2, **seconds: float) -> gpureport.Analysis:
    """Return a run of GPUs of ten minutes each, whose time is divided as given, without a finding."""
    found = gpureport.analyze(run(gpus=gpus))
    times = tuple(replace(time, seconds=tuple(seconds.items()), parts=()) for time in found.gpu_time)
    return replace(found, gpu_time=times, findings=(), not_judged=())


def step(
    label: str, work: float | None = 1000.0, *, util: float = 95.0, runs: int = 1, gpus: int = 1
) -> list[Recording]:
    """Return the runs of a step of five minutes each, which differ a little in how much they did."""
    made = []
    for place in range(runs):
        values = [util + (second * 7 + place * 3) % 5 for second in range(301)]
        one = run(f"{label}/{place + 1}" if runs > 1 else label, gpus=gpus, seconds=300, util=values)
        done = None if work is None else Work(amount=work * (1 + place / 200), unit="images")
        made.append(with_run(one, step=label, work=done))
    return made


def trained(label: str, value: float, work: float, count: int = 3) -> list[Recording]:
    name = "images_per_second" if value > 1 else "val_accuracy"
    points = [(float(second), name, value - 0.1 * (300 - second) / 300) for second in range(30, 301, 30)]
    return [testing.with_training(one, points) for one in step(label, work, runs=count)]


def groups(*works: float, count: int = 3, lr: str = "0123", **more: str) -> gpureport.Comparison:
    made, params = [], {"lr": lr, **more}
    for place, work in enumerate(works):
        stated = {key: values[place] for key, values in params.items()}
        several = step(f"{place}", work, runs=count)
        made += [testing.with_params(with_run(one, step=None), **stated) for one in several]
    return gpureport.compare(made, by=",".join(f"param:{key}" for key in params))


def page_of(*results: Recording | gpureport.Analysis) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(build_page(results, "json"))
    return found


@cache
def sample_page(*folders: str) -> dict[str, Any]:
    return page_of(*sample(*folders))


def strings(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for value in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from strings(value)


def plain(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.replace(GAP, " ").split()))


def off(text: str, value: float) -> float:
    """Return by how many units of its last digit the first number of a text differs from a value; 0.5 is rounding."""
    found = AMOUNT.match(plain(text))
    assert found, text
    less, digits, unit = found.groups()
    scale = SCALES.get(unit or "", 1.0)
    shown = float(digits.replace(",", "").replace("−", "-")) * scale
    if less:
        return 0.0 if 0 < value < shown else math.inf
    return abs(shown - value) / (10.0 ** -len(digits.partition(".")[2]) * scale)


class ReadPage(HTMLParser):
    """What a browser would make of a page: tags, attributes, words outside style, scripts and figures."""

    VOID = frozenset({"meta", "br", "img", "path", "rect", "use", "input", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script", "svg"} & set(self.open):
            self.words.append(data)

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]

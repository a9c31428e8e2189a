"""No share, interval or count of any format differs from its value, or from the samples, by more than rounding."""

import json
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import gpureport
from gpureport.number_format import ENERGY, GPU_TIME
from gpureport.report import build, render
from gpureport.report.model.report_content import Report
from gpureport.report.samples import embedded_series
from gpureport.report.wording import display
from tests.report import sample_reports

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.:]\d+)*")
_AMOUNT = re.compile(r"(<)?([-−]?[\d,]+(?:\.\d+)?)(?: ?(%|°C|[mkM]?Wh|[MG]iB|MHz|W|GPU-(?:h|min|s|ms)))?")
_SCALES = {"%": 0.01, "MHz": 1e6, "GiB": 2.0**30, "MiB": 2.0**20, **dict(GPU_TIME), **dict(ENERGY)}
_LETTERED = {"0", "100", "95", "5"}
"""Numbers in words of the templates: 0 to 100%, intervals of 95%, utilisation of 5%."""


def plain(text: str) -> str:
    """Return text with ordinary spaces."""
    return text.replace(display.GAP, " ")


def off(text: str, value: float) -> float:
    """Return by how many units of its last digit the first number of a text differs from a value; 0.5 is rounding."""
    found = _AMOUNT.match(plain(text))
    assert found, text
    less, digits, unit = found.groups()
    last = 10.0 ** -len(digits.partition(".")[2]) * _SCALES.get(unit or "", 1.0)
    shown = float(digits.replace(",", "").replace("−", "-")) * _SCALES.get(unit or "", 1.0)
    if less:
        return 0.0 if 0 < value < shown else math.inf
    return abs(shown - value) / last


class _Words(HTMLParser):
    """Collects the words of a page but for style, figures and blobs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag in {"style", "script", "svg"}:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.inside:
            self.inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.words.append(data)


def strings(content: object) -> Iterator[str]:
    """Yield every string of some JSON, and how long every list is."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from strings(value)
    elif isinstance(content, list):
        yield str(len(content))
        for value in content:
            yield from strings(value)


def numbers(text: str) -> set[str]:
    """Return the numbers of a text as they are written."""
    return set(_NUMBER.findall(plain(text)))


def shown(content: Report, extension: str) -> str:
    """Return what a reader of a format reads."""
    text = render(content, extension, detail=0 if extension == ".txt" else None).decode()
    return " ".join(_Words(text).words) if extension == ".html" else text.replace("\\", "")


@pytest.mark.parametrize("extension", [".html", ".md", ".txt"])
@pytest.mark.parametrize("name", sample_reports.SETS)
def test_no_format_has_a_number_of_its_own(name: str, extension: str) -> None:
    """Every number a person reads is one of the content, digit by digit, or counts what is listed."""
    content = sample_reports.report_on(sample_reports.SETS[name], price=2.0)
    told = set().union(*map(numbers, strings(json.loads(render(content, ".json")))))
    if extension == ".html" and (packed := embedded_series.embed_series(content.timeline)):
        # how many samples the page holds, and how much its charts round them
        told |= numbers(packed.note)
    lists = {str(len(content.findings)), *(str(len(card.occurrences)) for card in content.findings)}
    text = re.sub(r"&#x27;", "", shown(content, extension))
    assert numbers(text) - told - lists - _LETTERED == set()


@pytest.mark.parametrize("extension", [".html", ".md", ".txt"])
@pytest.mark.parametrize("name", sample_reports.SETS)
def test_every_format_shows_the_key_figures(name: str, extension: str) -> None:
    """Tiles and steps stand in each format as the content words them, and but for Markdown shares and losses."""
    content = sample_reports.report_on(sample_reports.SETS[name], price=2.0)
    text = " ".join(plain(shown(content, extension)).split())
    wanted = [tile.value for tile in content.tiles]
    if extension != ".md":
        wanted += [part.text for bar in content.gpu_time if bar.whole for part in bar.parts]
        wanted += [card.lost for card in content.findings]
    wanted += [cell.text for row in content.steps.rows for cell in row.cells] if content.steps else []
    assert [entry for entry in wanted if plain(entry) not in text] == []


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_words_are_the_values_rounded(name: str) -> None:
    """Shares by class, losses, figures of GPUs and intervals are worded to within half of the last digit shown."""
    content = sample_reports.report_on(sample_reports.SETS[name], price=2.0)
    wrong: list[object] = []
    for bar in content.gpu_time:
        total = sum(part.seconds for part in bar.parts)
        for part in bar.parts:
            # classes too small to show are left out of the ratios, not of the whole
            hidden = 11 * 0.0005
            wrong += [part] if off(part.text, part.ratio) > 0.5 + 1e-6 + hidden else []
            wrong += [part] if off(part.hours, part.seconds) > 0.5 + 1e-6 else []
            assert part.ratio == pytest.approx(part.seconds / total, abs=1e-9)
    for card in content.findings:
        if card.lost_seconds is not None and card.lost_ratio is not None and "GPU-" in card.lost:
            amount, share = re.findall(r"<?[\d.,]+(?: GPU-\w+|%)", plain(card.lost))[:2]
            wrong += [card.lost] if off(amount, card.lost_seconds) > 0.5 + 1e-6 else []
            wrong += [card.lost] if off(share, card.lost_ratio) > 0.5 + 1e-6 else []
    cells = [cell for run in content.gpus for row in run.table.rows for cell in row.cells]
    wrong += [cell for cell in cells if cell.value is not None and off(cell.text, cell.value) > 0.5 + 1e-6]
    assert [cell for cell in cells if (cell.value is None) != (cell.text == display.NOT_RECORDED)] == []
    for chart in content.comparison.charts if content.comparison else ():
        for row in chart.rows:
            if row.value is not None:
                ends = re.findall(r"-?[\d.]+", plain(row.text))
                values = [row.value, *(row.interval or ())]
                unit = " %" if chart.share else ""
                wrong += [row for end, value in zip(ends, values, strict=True) if off(end + unit, value) > 0.5 + 1e-6]
    assert wrong == []


def recorded(folder: Path) -> Report:
    """Return the report on a log of two GPUs whose every sample is known: 1200 s, a second apart."""
    rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
    for second in range(1201):
        stamp = f"2026/03/14 10:{second // 60:02d}:{second % 60:02d}.000"
        for gpu in range(2):
            idle = 300 <= second < (420 if gpu == 0 else 360)
            values = f"{0 if idle else 80} %, {4096 + 1024 * gpu} MiB, 81920 MiB, {100 if idle else 400}.00 W"
            rows.append(f"{stamp}, {gpu}, {values}")
    log = folder / "gpu.csv"
    log.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (recording,) = gpureport.read(log)
    runs = [(recording, gpureport.analyze(recording))]
    return build(runs, title=None, command="gpureport", gpu_hour_price=None, version="0.1.0")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report on the log whose samples are known."""
    return recorded(tmp_path_factory.mktemp("log"))


def test_figures_are_those_of_the_samples(known: Report) -> None:
    """Idle share, utilisation, energy and memory counted by hand from the samples, in words and as numbers."""
    idle = {"GPU 0": 120 / 1201, "GPU 1": 60 / 1201}
    utilisation = {gpu: 0.8 * (1 - ratio) for gpu, ratio in idle.items()}
    # half of the first second and of the last lie beyond the run
    joules = {gpu: 1201 * (400 - 300 * ratio) - 400 for gpu, ratio in idle.items()}
    content = json.loads(render(known, ".json"))
    table = content["gpus"][0]["table"]

    def of(column: str) -> dict[str, float]:
        place = table["columns"].index(column) - 1
        return {row["head"]["text"]: row["cells"][place]["value"] for row in table["rows"]}

    assert of("Use up to 5%") == pytest.approx(idle, abs=1e-6)
    assert of("Utilisation mean") == pytest.approx(utilisation, abs=1e-6)
    assert of("Energy") == pytest.approx(joules, rel=1e-9)
    assert of("Peak memory") == {"GPU 0": 4096 * 2**20, "GPU 1": 5120 * 2**20}
    held = sum(part["seconds"] for bar in content["gpu_time"] if bar["label"] == "all GPUs" for part in bar["parts"])
    assert held == pytest.approx(2 * 1200, abs=1e-6)
    tiles = {tile.label: plain(f"{tile.value} {tile.unit}") for tile in known.tiles}
    assert tiles["GPU time lost"].endswith("of 40.0 GPU-min")
    for extension in (".html", ".txt"):
        text = plain(shown(known, extension))
        figures = [
            *map(display.percent, (*idle.values(), *utilisation.values())),
            *map(display.energy, joules.values()),
        ]
        assert [figure for figure in figures if plain(figure) not in text] == []


def test_counts_are_those_of_the_log(known: Report) -> None:
    """Lines read and kept, in every format that accounts for them."""
    for extension in (".html", ".txt", ".json"):
        text = " ".join(plain(shown(known, extension)).split())
        assert "2,403 read = 2,402 kept as samples + 0 rejected + 1 header" in text

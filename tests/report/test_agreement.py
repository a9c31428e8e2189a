"""No share, interval or count of any format differs from its value, or the samples, by more than rounding."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import gpureport
from gpureport.report.wording import differences, display, scales
from gpureport.testing import build_page
from tests.support import runs
from tests.support.runs import AMOUNT, CHAIN, SCALES, off, plain
from tests.support.tables import read_table

SETS = {
    "one run": ("healthy",),
    "eight GPUs": ("thermal_throttle",),
    "five steps": (*CHAIN, "healthy", "underutilised"),
    "broken log": ("faulty_hardware",),
    "coarse table": ("tables",),
    "other recorder": ("dcgm",),
}
"""Folders of sample logs, by what a page on them shows."""


@pytest.fixture(scope="module", params=SETS)
def analyses(request: pytest.FixtureRequest) -> tuple[gpureport.Analysis, ...]:
    settings = {"prices": {"gpu_hour": 2.0, "currency": "USD", "date": "2026-03-01"}}
    return tuple(gpureport.analyze(each.recording, settings=settings) for each in runs.sample(*SETS[request.param]))


def test_words_are_the_values_rounded(analyses: tuple[gpureport.Analysis, ...]) -> None:
    content = json.loads(build_page(analyses, "json"))
    pairs = []
    for card in content["findings"]:
        if card["lost_seconds"] is not None and card["lost_ratio"] is not None and "GPU-" in card["lost"]:
            amount, share = re.findall(r"<?[\d.,]+(?: GPU-\w+|%)", plain(card["lost"]))[:2]
            pairs += [(amount, card["lost_seconds"]), (share, card["lost_ratio"])]
    cells = [cell for run in content["gpus"] for row in run["table"]["rows"] for cell in row["cells"]]
    pairs += [(cell["text"], cell["value"]) for cell in cells if cell["value"] is not None]
    assert [cell for cell in cells if (cell["value"] is None) != (cell["text"] == "not recorded")] == []
    for chart in content["comparison"]["charts"] if content["comparison"] else ():
        for row in (row for row in chart["rows"] if row["value"] is not None):
            ends = re.findall(r"-?[\d.]+", plain(row["text"]))
            values = [row["value"], *(row["interval"] or ())]
            unit = " %" if chart["share"] else ""
            pairs += [(end + unit, value) for end, value in zip(ends, values, strict=True)]
    assert [pair for pair in pairs if off(*pair) > 0.5 + 1e-4] == []


def test_what_has_one_label_has_one_figure(analyses: tuple[gpureport.Analysis, ...]) -> None:
    content = json.loads(build_page(analyses, "json"))
    found: dict[tuple[str, str], list[str]] = {}
    for bar in content["gpu_time"]:
        for part in bar["parts"]:
            found.setdefault((bar["label"], part["label"]), []).append(part["text"])
    table = content["gpu_time_table"]
    for row in table["rows"]:
        for name, cell in zip(table["columns"][1:], row["cells"], strict=True):
            found.setdefault((row["head"]["text"], name), []).append(cell["text"])
    if content["steps"]:
        *_, last = content["steps"]["rows"]
        for name, cell in zip(content["steps"]["columns"][1:], last["cells"], strict=True):
            title, _, unit = name.partition(", ")
            found.setdefault(("last step", title), []).append(f"{cell['text']} {unit}".strip())
        for tile in content["tiles"]:
            found.setdefault(("last step", tile["label"]), []).append(f"{tile['value']} {tile['unit']}".strip())
    alike = {key: {*map(plain, texts)} for key, texts in found.items() if len(texts) > 1}
    assert len(alike) >= 3
    for key, texts in alike.items():
        amounts = [match for text in texts if (match := AMOUNT.match(text)) and match[2]]
        first = next((float(each[2].replace(",", "")) * SCALES.get(each[3] or "", 1.0) for each in amounts), None)
        assert first is None or all(off(each[0], first) <= 1.0 + 1e-6 for each in amounts), (key, texts)


def recorded(folder: Path) -> gpureport.Analysis:
    """Return a log of two GPUs whose every sample is known: 1200 s, a second apart."""
    rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
    for second in range(1201):
        stamp = f"2026/03/14 10:{second // 60:02d}:{second % 60:02d}.000"
        for gpu in range(2):
            idle = 300 <= second < (420 if gpu == 0 else 360)
            values = f"{0 if idle else 80} %, {4096 + 1024 * gpu} MiB, 81920 MiB, {100 if idle else 400}.00 W"
            rows.append(f"{stamp}, {gpu}, {values}")
    (folder / "gpu.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (recording,) = gpureport.read(folder / "gpu.csv")
    return gpureport.analyze(recording)


def test_figures_and_counts_are_those_of_the_samples(tmp_path: Path) -> None:
    known = recorded(tmp_path)
    content = json.loads(build_page(known, "json"))
    idle = {"GPU 0": 120 / 1201, "GPU 1": 60 / 1201}
    utilisation = {gpu: 0.8 * (1 - ratio) for gpu, ratio in idle.items()}
    # half of the first second and of the last lie beyond the run
    joules = {gpu: 1201 * (400 - 300 * ratio) - 400 for gpu, ratio in idle.items()}
    table = content["gpus"][0]["table"]
    columns = {
        name: {row["head"]["text"]: row["cells"][place]["value"] for row in table["rows"]}
        for place, name in enumerate(table["columns"][1:])
    }
    assert columns["Near idle"] == pytest.approx(idle, abs=1e-6)
    assert columns["Utilisation mean"] == pytest.approx(utilisation, abs=1e-6)
    assert columns["Energy"] == pytest.approx(joules, rel=1e-9)
    assert columns["Peak memory"] == {"GPU 0": 4096 * 2**20, "GPU 1": 5120 * 2**20}
    held = sum(part["seconds"] for bar in content["gpu_time"] if bar["label"] == "all GPUs" for part in bar["parts"])
    assert held == pytest.approx(2 * 1200, abs=1e-5)
    for form in ("html", "txt", "json"):
        text = plain(build_page(known, form, full=True).replace("<wbr>", ""))
        assert "2,403 read = 2,402 kept as samples + 0 rejected + 1 header" in text, form
        wanted = ("10%", "5.0%", "72%", "76%", "of 40.0 GPU-min")
        assert [each for each in wanted if each not in text] == [], form


FORMS: dict[str, Callable[[float], str]] = {
    "signed_memory": scales.MEMORY.format_signed,
    "quantity By/s": lambda value: display.quantity(value, "By/s"),
    "quantity 1": lambda value: display.quantity(value, "1"),
    "format_percent_change": differences.format_percent_change,
    "format_times": differences.format_times,
}
"""What writes a number; the others are functions of `display`."""


def test_a_number_in_its_form() -> None:
    for name, value, text in read_table(Path(__file__).with_name("numbers.tsv")):
        write = FORMS.get(name) or getattr(display, name)
        assert write(float(value)).replace(display.GAP, " ") == text, (name, value)
    assert [display.drop_equal_ends(each) for each in ("45 to 45%", "45 to 58%")] == ["", "45 to 58%"]


def test_what_was_not_recorded_is_never_zero() -> None:
    assert display.or_not_recorded(None, display.percent) == "not recorded"
    assert display.or_not_recorded(0.0, display.percent) == "0%"

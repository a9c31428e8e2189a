"""The page on one screen of a terminal: at most 30 lines that say what happened, why, and what next."""

import gzip
import io
import re
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.cli.main import main
from gpureport.testing import build_page, with_quality
from tests.support import runs
from tests.support.hostile import TEXTS, steps_with
from tests.support.runs import SAMPLES, plain, run, step


def width(text: str) -> int:
    wide = {"W", "F"}
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in wide) for sign in text)


def check_screen(results: Any, columns: int = 80) -> list[str]:
    lines = build_page(results, "txt").splitlines()
    assert len(lines) <= 30
    assert [line for line in lines if width(line) > columns and " " in line.strip()] == []
    content = runs.page_of(*(results if isinstance(results, list | tuple) else [results]))
    sentence = content["verdict"]["sentence"].split()
    assert lines[0].split() == sentence[: len(lines[0].split())]
    return lines


@pytest.mark.slow
def test_steps_and_many_gpus_are_one_screen() -> None:
    check_screen(runs.sample(*runs.CHAIN))
    check_screen(runs.recorded_steps())
    check_screen(run(gpus=64, seconds=120))
    check_screen([one for place in range(60) for one in step(f"step {place}")][:60])


def test_one_row_is_one_screen(tmp_path: Path) -> None:
    with gzip.open(SAMPLES / "thermal_throttle/nvidia-smi.csv.gz", "rt") as log:
        (tmp_path / "row.csv").write_text("".join(log.readlines()[:2]))
    check_screen(gpureport.read(tmp_path / "row.csv"))


def test_bars_are_as_long_as_the_time_they_stand_for() -> None:
    content = runs.page_of(*runs.recorded_steps())
    lines = check_screen(runs.recorded_steps())
    drawn = {line.split()[0]: line.split()[1] for line in lines if re.match(r"  \d-", line) and "█" in line}
    amounts = {bar["label"]: sum(part["value"] for part in bar["segments"]) for bar in content["spent"]["bars"]}
    longest = max(amounts, key=lambda name: amounts[name])
    scale = len(drawn[longest]) / amounts[longest]
    assert set(drawn) == set(amounts)
    assert [name for name in drawn if abs(len(drawn[name]) - amounts[name] * scale) > 1] == []
    assert any(line.rstrip().endswith("better") for line in lines)


@pytest.mark.slow
def test_no_doubt_is_cut() -> None:
    made = []
    for place in range(40):
        one = with_quality(*step(f"step {place}"), unfinished=True)
        devices = tuple(replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in one.run.devices)
        made.append(runs.with_run(one, devices=devices))
    verdict = runs.page_of(*made)["verdict"]
    shown = plain(" ".join(check_screen(made)))
    assert verdict["doubts"] >= 1
    assert [doubt for doubt in verdict["details"][: verdict["doubts"]] if plain(doubt) not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (("analyze", "gpu.csv"), "gpureport report gpu.csv -o report.html"),
        (("analyze", "--detail=short", "gpu.csv", "--format", "text"), "gpureport report gpu.csv -o report.html"),
        (("demo", "--detail", "short"), "gpureport demo -o report.html"),
    ],
)
def test_the_last_line_is_the_command_for_the_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    last: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gpureport", *arguments])
    with gzip.open(SAMPLES / "thermal_throttle/nvidia-smi.csv.gz", "rt") as log:
        (tmp_path / "gpu.csv").write_text(log.read())
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code == 0
    assert plain(capsys.readouterr().out.replace("\\\n", " ")).endswith(last)


def test_text_is_plain_when_piped_and_holds_no_steering() -> None:
    for full in (False, True):
        assert "\x1b" not in build_page(runs.sample("thermal_throttle"), "txt", full=full)
        assert "\x1b" not in build_page(steps_with(TEXTS["escape codes"]), "txt", full=full)


def test_a_terminal_that_takes_no_utf_8_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit):
        main(["analyze", str(SAMPLES / "thermal_throttle")])
    out.flush()
    text = out.buffer.getvalue()  # type: ignore[attr-defined]  # of BytesIO
    assert text.isascii()
    assert b"# Computing   t Slowed by heat" in text


def test_letters_of_any_width_keep_lines_and_columns() -> None:
    for name in ("训练" * 30, "🚀" * 40, "e\u0301" * 60):
        made = [runs.with_run(run(f"{name} {place}", seconds=60), step=f"{name} {place}") for place in range(2)]
        lines = build_page(made, "txt", full=True).splitlines()
        unbroken = [line for line in lines if max(map(width, line.split(" "))) <= 44 and "--query-gpu" not in line]
        assert [line for line in unbroken if width(line) > 80] == [], name
        bars = [line for line in lines if "█" in line and "GPU-" in line]
        assert len({width(line.partition("█")[0]) for line in bars}) <= 2, name

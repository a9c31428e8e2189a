"""Headline, lead and tiles, and the screen in a terminal."""

import io
import json
import re
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport import testing
from gpureport.cli.main import main
from gpureport.testing import Confidence, Recording, build_page, with_quality, with_training
from tests.readers.pairs import hold
from tests.support import runs
from tests.support.logs import SAMPLES
from tests.support.runs import divided, page_of, plain, run, step
from tests.support.tables import read_table


def check_words(page: dict[str, Any]) -> None:
    """Fail where a headline is long, names what only programs know, or a sentence stands twice."""
    verdict = page["verdict"]
    lines = [verdict["sentence"], *verdict["details"], *verdict["notes"]]
    assert len(verdict["sentence"].split()) <= 16, verdict["sentence"]
    assert not re.search(r"[()\[\]]", verdict["sentence"]), verdict["sentence"]
    assert len(verdict["details"]) <= 4
    assert len(set(lines)) == len(lines), lines
    for line in lines:
        assert re.search(r"[.?]$", line), line
        assert not re.search(r"  |\b(gpu|cpu|host|mem|idle|clock)_[a-z_]+|[≥≤∈]|[<>]=", line), line


def without_gpu() -> Recording:
    return gpureport.Recording(run=replace(run().run, devices=()), series=run().series.slice(0, 0))


def lost(start: float, end: float) -> gpureport.Analysis:
    made = replace(testing.finding("gpu_lost", (start, end), lost=end - start), severity=testing.Severity.PROBLEM)
    return runs.with_findings(gpureport.analyze(run(gpus=2, seconds=300)), made)


def served() -> gpureport.Analysis:
    made = testing.finding("idle_gap", (100, 280), lost=180.0, cause="requests or input")
    return runs.with_findings(divided(computing=500, idle=100), made)


def held() -> gpureport.Analysis:
    made = testing.finding("unused_gpu", (0, 600), lost=600.0)
    used = testing.Evidence(metric="gpu_memory_used_bytes", statistic="max", observed=2.0**34, unit="By")
    return runs.with_findings(divided(computing=600), replace(made, evidence=(used,)))


def drivers(*named: str) -> Recording:
    made = run(gpus=len(named))
    gpus = [replace(gpu, driver=driver) for gpu, driver in zip(made.run.devices, named, strict=False)]
    return replace(made, run=replace(made.run, devices=(*gpus, *made.run.devices[len(named) :])))


PAUSES = np.tile([70.0, 60.0, 66.0, 64.0], 75)
BUSY = divided(computing=600)
MADE: dict[str, Callable[[], Any]] = {
    "a busy run": lambda: BUSY,
    "a failed job": lambda: replace(BUSY, run=replace(BUSY.run, tags=(("exit_code", "1"),))),
    "pauses of a tenth": lambda: divided(computing=540, short_pauses=60),
    "pauses of less": lambda: divided(computing=541, short_pauses=59),
    "a third lost": lambda: divided(computing=400, idle=100, throttled=60, startup=20, tail=15, low_use=5),
    "a lost GPU counts as lost": lambda: divided(computing=520, startup=20, gpu_lost=60),
    "a GPU that never answered": lambda: lost(0, 300),
    "a GPU that was lost for a while": lambda: lost(100, 160),
    "a GPU that may serve requests": served,
    "a GPU that another process holds": held,
    "little used": lambda: testing.recording(util=PAUSES),
    "start-up is not low use": lambda: testing.recording(util=[*np.zeros(9), *np.tile([74.0, 70.0, 73.0, 71.0], 15)]),
    "low use after start-up": lambda: testing.recording(util=[*np.zeros(9), *PAUSES[:60]]),
    "a tenth without data": lambda: divided(computing=540, no_samples=60),
    "two thirds without data": lambda: divided(computing=100, idle=100, no_samples=400),
    "mostly not assessed": lambda: testing.recording(util=np.tile([90.0, 80.0], 60)),
    "waits that only the training log shows": lambda: with_training(
        run(), [(float(at), "data_wait_ratio", 0.56) for at in range(0, 600, 10)]
    ),
    "growing memory": lambda: runs.sample("mem_leak"),
    "heat": lambda: runs.sample("thermal_throttle"),
    "two machines in one log": lambda: drivers("450.57", "460.27"),
    "nothing assessed": lambda: gpureport.analyze(run(), select="cpu_bound"),
    "no GPU": without_gpu,
    "no utilisation": lambda: run(util=np.nan),
    "three samples": lambda: run(seconds=2),
    "one sample": lambda: run(seconds=0),
    "half of the GPU time idle": lambda: run(util=[97.0] * 200 + [0.0] * 200 + [97.0] * 201),
    "twice the work": lambda: step("a", runs=3) + step("b", 2000, runs=3),
    "half the work": lambda: step("a", runs=3) + step("b", 500, runs=3),
    "twice the work once": lambda: step("a") + step("b", 2000),
    "twice the work on one side": lambda: step("a", runs=3) + step("b", 2000),
    "the same work": lambda: step("a", runs=3) + step("b", runs=3),
    "busier, work not known": lambda: step("a", None, util=40) + step("b", None, util=90),
    "a step of seconds": lambda: [*step("a"), runs.with_run(run("b", seconds=19), step="b")],
    "faster but worse": lambda: gpureport.compare(
        runs.trained("a", 0.79, 1000) + runs.trained("b", 0.61, 2000), target="val_accuracy=0.7"
    ),
    "faster and as good": lambda: runs.trained("a", 0.79, 1000) + runs.trained("b", 0.79, 2000),
    "slower training": lambda: runs.trained("a", 99, 900) + runs.trained("b", 70, 900),
    "the best of three groups": lambda: runs.groups(1000, 3000, 2000),
    "two settings": lambda: runs.groups(9, 8, 6, 5, lr="1212", batch_size="3388"),
    "groups of single runs": lambda: runs.groups(1000, 3000, 2000, count=1),
    "training that slows": lambda: runs.with_findings(divided(computing=600), testing.finding("rate_falls", (30, 600))),
    "groups alike": lambda: runs.groups(1000, 1000, 1000),
}
TOLD = {name: told for name, *told in read_table(Path(__file__).with_name("headlines.tsv"))}


@pytest.mark.parametrize("name", MADE)
def test_a_run_made_by_hand_has_its_headline(name: str, *, update_golden: bool) -> None:
    code, figure = TOLD[name]
    page = json.loads(build_page(MADE[name](), "json"))
    check_words(page)
    compared = page["comparison"] or {"study": [], "reference": []}
    links = [block for block in compared["reference"] if block.get("anchor") == "links"]
    told = {"verdict": page["verdict"], "tiles": page["tiles"], "study": compared["study"], "links": links}
    assert (page["verdict"]["code"], figure in json.dumps(told, ensure_ascii=False)) == (code, True)
    hold(Path(__file__).with_name("expected") / f"{name}.json", told, update=update_golden)


@pytest.mark.parametrize(("rule", "code"), [("idle_ratio <= 0%", "rules_failed"), ("idle_ratio <= 90%", "healthy")])
def test_a_run_that_breaks_a_rule_is_not_healthy(tmp_path: Path, rule: str, code: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(SAMPLES / "healthy"), "--fail-on", rule, "-o", str(tmp_path / "r.json")])
    page = json.loads((tmp_path / "r.json").read_text())
    assert ended.value.code == (1 if code == "rules_failed" else 0)
    assert page["verdict"]["code"] == code
    assert (rule in page["verdict"]["details"][0]) == (code == "rules_failed")


def test_losses_that_are_large_or_not_known_are_never_nothing() -> None:
    for seconds, every in ((20, 10.0), (96, 1.0), (300, 1.0)):
        made = testing.recording(util=np.tile([24.0, 22.0, 26.0], seconds)[:seconds], every=every)
        page = page_of(replace(gpureport.analyze(made), findings=()))
        texts = [plain(text) for text in runs.strings(page)]
        wrong = [text for text in texts if re.search(r"ardly any GPU|othing lost|lost 0%$|no problems found", text)]
        assert wrong == [], (seconds, every)
    heat = replace(testing.finding("thermal_throttle", (0, 300)), severity=testing.Severity.PROBLEM)
    page = page_of(runs.with_findings(divided(computing=600), heat))
    (tile,) = [tile for tile in page["tiles"] if tile["label"] == "GPU time lost"]
    assert (page["verdict"]["code"], page["verdict"]["kind"]) == ("finding", "thermal_throttle")
    assert page["findings"][0]["lost_seconds"] is None
    assert tile["value"] != "0%"


def test_at_most_two_doubts_stand_before_all_else() -> None:
    step_back = testing.ClockStep(
        device="gpu:0", at=testing.at(60), step_seconds=-600.0, shift_seconds=600.0, cause="clock set back"
    )
    several = []
    stated = testing.Work(amount=600.0, unit="steps")
    logged = [(float(second), "loss", 1.0) for second in range(0, 300, 10)]
    for label in ("a", "b"):
        made = testing.with_quality(*step(label), unfinished=True, clock_steps=(step_back,))
        several.append(with_training(runs.with_run(made, work=stated), logged, [at * 600 for at in range(30)]))
    verdict = page_of(*several)["verdict"]
    assert (verdict["doubts"], verdict["further_doubts"]) == (2, 1)
    assert page_of(run())["verdict"]["doubts"] == 0
    assert page_of(with_quality(run(), unfinished=True))["verdict"]["doubts"] == 1


def width(text: str) -> int:
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


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
    check_screen(run(seconds=0))
    check_screen([one for place in range(60) for one in step(f"step {place}")][:60])


def test_few_samples_are_said_and_bars_are_as_long_as_their_time() -> None:
    for count, every, doubts in ((12, 90.0, 1), (29, 60.0, 1), (30, 90.0, 0), (12, 30.0, 0)):
        verdict = page_of(testing.recording(util=[80.0] * count, every=every))["verdict"]
        named = [line for line in verdict["details"] if f"{count} samples" in line]
        assert (verdict["doubts"], len(named)) == (doubts, doubts), (count, every, verdict)
    for confidence, is_said in ((Confidence.LOW, True), (Confidence.HIGH, False)):
        made = testing.finding("idle_gap", (100, 280), lost=180.0, confidence=confidence)
        details = page_of(runs.with_findings(divided(computing=500, idle=100), made))["verdict"]["details"]
        assert any("onfidence" in line for line in details) == is_said, details
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


def test_a_terminal_that_takes_no_utf_8_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit):
        main(["analyze", str(SAMPLES / "thermal_throttle")])
    out.flush()
    text = out.buffer.getvalue()
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


SMALL = Path(__file__).with_name("small")
_NAMES = {"util": "utilization.gpu [%]", "memory": "memory.used [MiB]", "total": "memory.total [MiB]", "name": "name"}
_NAMES |= {"power": "power.draw [W]", "limit": "enforced.power.limit [W]", "temperature": "temperature.gpu"}
_NAMES |= {"clock": "clocks.current.sm [MHz]", "reasons": "clocks_event_reasons.active"}


def smi(*parts: tuple[int, dict[str, Any]], every: float = 2.0, start: str = "2026-07-02T10:00", gpus: int = 1) -> str:
    """Return a log of nvidia-smi: for each part so many readings, of all GPUs alike."""
    names = list(parts[0][1])
    lines = [", ".join(["timestamp, index", *(_NAMES[name] for name in names)])]
    readings = [cells for count, cells in parts for _ in range(count)]
    for number, cells in enumerate(readings):
        time = datetime.fromisoformat(start) + timedelta(seconds=every * number)
        values = ", ".join(str(cells[name]) for name in names)
        lines += [f"{time:%Y/%m/%d %H:%M:%S}.000, {gpu}, {values}" for gpu in range(gpus)]
    return "\n".join(lines) + "\n"


SAID = tomllib.loads((SMALL / "logs.toml").read_text(encoding="utf-8"))
_WORKS = SAID["readings"]["works"]


def small(parts: list[Any], every: float = 2.0, times: int = 1, starts: Sequence[str] = ("2026-07-02T10:00",)) -> str:
    """Return one of the small logs."""
    read = [(count, SAID["readings"][name] | dict(*more)) for count, name, *more in parts * times]
    return "".join(smi(*read, every=every, start=start) for start in starts)


@pytest.mark.parametrize(
    ("command", "text", "answer"),
    [
        pytest.param("analyze", (SMALL / "statistics.txt").read_text(), "Energy 144 Wh", id="statistics"),
        pytest.param("fleet", (SMALL / "jobs.txt").read_text(), "70% computing", id="jobs"),
        *(pytest.param("analyze", small(**SAID["logs"][name]), said, id=name) for name, said in SAID["says"].items()),
    ],
)
def test_what_small_logs_say_is_told(
    command: str, text: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log := tmp_path / "log.txt").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        main([command, str(log)])
    assert answer in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_steps_say_how_training_scales_and_what_was_not_recorded_in_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(name: str, start: str, gpus: int, rate: float, *, is_warm: bool = False) -> None:
        (folder := tmp_path / name).mkdir(parents=True)
        began, cells = datetime.fromisoformat(start), _WORKS | {"temperature": 45, "clock": 1400}
        cells |= {"temperature": 65, "clock": 1270} if is_warm else {}
        (folder / "gpu.csv").write_text(smi((300, cells), start=start, gpus=gpus), encoding="utf-8")
        logged = [(f"{began + timedelta(seconds=at):%Y-%m-%dT%H:%M:%S}", at) for at in range(0, 600, 5)]
        rows = [f"{time},{at},{2 / (1 + at / 99):.3f},{rate}\n" for time, at in logged]
        (folder / "training.csv").write_text("time,step,loss,images_per_second\n" + "".join(rows), encoding="utf-8")

    def compare(*names: str) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main(["compare", *(name if name in {"--by", "folder"} else str(tmp_path / name) for name in names)])
        return plain(capsys.readouterr().out)

    record("g1", "2026-07-02T09:00", 1, 100)
    record("g4", "2026-07-02T10:00", 4, 280)
    record("g8", "2026-07-02T11:00", 8, 784)
    assert "4 GPUs do 70% as much work per GPU as 1 did" in compare("g1", "g4")
    assert "8 GPUs do 98% as much work per GPU as 1 did." in compare("g1", "g8")
    for run_number in range(3):
        record(f"before/r{run_number}", f"2026-07-02T11:{run_number}0", 1, 100)
        record(f"after/r{run_number + 3}", f"2026-07-02T12:{run_number}0", 1, 90, is_warm=True)
        record(f"cool/r{run_number + 6}", f"2026-07-02T13:{run_number}0", 1, 90)
    assert "Steps not alternated: r5 started 20 °C warmer and ran at a 9.3% lower clock" in compare("before", "after")
    by_folder = {name: compare("before", name, "--by", "folder") for name in ("after", "cool")}
    assert {name: said.count("not alternated") for name, said in by_folder.items()} == {"after": 1, "cool": 1}, (
        by_folder
    )
    assert "not alternated (A B A B)" in by_folder["cool"]

"""`gpureport compare`: its JSON, steps by file, label, param and folder, and the work that runs did."""

import json
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import gapped, log, row, table, write_recording
from tests.support.program import Program

_NINE = 1_773_478_800
"""When logs start, in seconds since 1970 if they are of UTC."""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "before.csv").write_text(gapped())
    (tmp_path / "after.csv").write_text(log(300))
    return tmp_path


def long(level: int, seconds: int = 700, power: int = 250) -> str:
    """Return a log long enough to tell its own scatter, at a utilisation that moves by two points."""
    return table(*(row(n, util=level + (n // 7) % 3, power=f"{power}.00 W") for n in range(seconds)))


def compare(gpureport: Program, *words: str) -> Any:
    done = gpureport("compare", *words, "--format", "json")
    assert done.code == 0, done
    return json.loads(done.out)


def steps(document: Any) -> dict[str, int]:
    return {step["label"]: len(step["runs"]) for step in document["steps"]}


def works(document: Any) -> list[list[float]]:
    """Return the work that each run of each step did, by the rate of the whole job and its GPU time."""
    runs = [[run["measures"] for run in step["runs"]] for step in document["steps"]]
    return [[round(each["gpu_seconds"] * each["work_rate_hertz"]) for each in step] for step in runs]


def test_logs_that_are_called_alike_are_told_apart(gpureport: Program, tmp_path: Path) -> None:
    logs = [f"{chain}/{step}/gpu.csv" for chain in ("c1", "c2") for step in ("slow", "fast")]
    for place, each in enumerate(logs):
        (tmp_path / each).parent.mkdir(parents=True)
        (tmp_path / each).write_text(log(300 + place))

    def names(*sources: str) -> list[str]:
        found = json.loads(gpureport("analyze", *sources, "--format", "json").out)["runs"]
        return [each["run"]["name"] for each in found]

    assert names(*logs) == ["c1/slow", "c1/fast", "c2/slow", "c2/fast"]
    assert names(logs[0]) == ["slow"]
    # those stored with one command are called apart; those stored one by one are when they are shown together
    assert gpureport("ingest", *logs[:3]).code == 0
    shutil.rmtree(tmp_path / "c1" / "slow")
    assert steps(compare(gpureport, "c1/slow", "fast")) == {"c1/slow": 1, "fast": 1}
    assert gpureport("ingest", logs[3]).code == 0
    one_by_one = [line.split()[0] for line in gpureport("runs").out.splitlines() if " fast " in line]
    assert names(*one_by_one) == ["c1/fast", "c2/fast"]


def test_a_long_command_leaves_room_for_the_comparison(gpureport: Program, tmp_path: Path) -> None:
    names = [f"steps/a-log-with-a-name-that-fills-most-of-a-line-{place:02}.csv" for place in range(15)]
    (tmp_path / "steps").mkdir()
    for place, each in enumerate(names):
        (tmp_path / each).write_text(log(300 + place))
    short, screen = (gpureport("compare", *words).out.splitlines() for words in (["steps"], names))
    headings = [[line.partition("  ")[0] for line in lines if line[:4].isupper()] for lines in (short, screen)]
    assert headings[0] == headings[1]
    assert (len(headings[0]) >= 3, len(screen) <= 30, names[7] in "".join(screen)) == (True, True, False)
    assert [each for each in names if each not in gpureport("compare", *names, "--detail", "full").out] == []


def test_steps_from_a_file(gpureport: Program, two: Path) -> None:
    (two / "more").mkdir()
    for name, level in (("a1", 60), ("a2", 61), ("b1", 80), ("b2", 82)):
        (two / "more" / f"{name}.csv").write_text(long(level, 120, power=level))
    params = {"a": "{workers = 2, amp = false}", "b": "{workers = 14, amp = false}"}
    text = "".join(f'[[step]]\nlabel = "{s}"\nruns = ["{s}1.csv", "{s}2.csv"]\nparams = {params[s]}\n' for s in "ab")
    (two / "more" / "steps.toml").write_text(text)
    document = compare(gpureport, "--steps", "more/steps.toml")
    assert steps(document) == {"a": 2, "b": 2}
    assert document["steps"][1]["runs"][1]["params"] == {"workers": "14", "amp": "False"}
    assert [(each["key"], each["before"], each["after"]) for each in document["changes"]] == [("workers", "2", "14")]
    first, second = document["gains"]
    assert (first["step"], first["since_before"], second["since_before"]["base"]) == ("a", None, "a")
    changed = [(change["key"], change["values_after"]) for change in second["changes"]]
    assert changed == [("workers", [{"text": "14", "runs": 2}])]
    assert (second["since_first"]["cost"], document["potential"]["step"]) == (None, "b")
    assert document["potential"]["at_most"] >= 1
    told = {delta["metric"]: (delta["verdict"], delta["runs"]) for delta in document["deltas"]}
    assert (told["gpu_utilization_ratio"], told["gpu_power_watts"]) == (("better", [2, 2]), ("differs", [2, 2]))


def test_each_run_did_its_own_work(gpureport: Program, two: Path) -> None:
    for place, name in enumerate(("a1", "a2", "b1", "b2", "c1")):
        (two / f"{name}.csv").write_text(long(60 + place, 120))
    shutil.copy(Path(__file__).parents[1] / "inputs/worked.toml", two)
    assert works(compare(gpureport, "--steps", "worked.toml", "--work", "800:steps")) == [[500, 500], [600, 700], [800]]
    given = ("--work", "1000:steps", "--work", "2000:steps")
    assert works(compare(gpureport, "before.csv", "after.csv", *given)) == [[1000], [2000]]


def test_stored_runs_are_steps_by_label_param_and_tag(gpureport: Program, two: Path) -> None:
    (two / "again.csv").write_text(gapped(320))
    for name, step, workers in (("before", "slow", 2), ("again", "slow", 2), ("after", "fast", 8)):
        labels = ("--step", step, "--param", f"workers={workers}", "--param", "lr=1", "--tag", "node=x")
        gpureport("ingest", f"{name}.csv", *labels, "--name", name)
    document = compare(gpureport, "before", "again", "after")
    assert [[run["name"] for run in step["runs"]] for step in document["steps"]] == [["before", "again"], ["after"]]
    changed = [(each["kind"], each["key"], each["before"], each["after"]) for each in document["changes"]]
    assert changed == [("param", "workers", "2", "8")]
    by_param = compare(gpureport, "before", "again", "after", "--by", "param:workers")
    assert steps(by_param) == {"workers=2": 2, "workers=8": 1}
    assert gpureport("compare", "before", "again", "after", "--by", "tag:node").code == 2


def test_every_cost_has_its_currency_and_its_prices_their_date(gpureport: Program, two: Path) -> None:
    (two / "after.csv").write_text(log(400))
    (two / "prices.toml").write_text('[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = 3.00\n')
    asked = ("before.csv", "after.csv", "--config", "prices.toml", "--work", "1000:steps")
    texts = [gpureport("compare", *asked, "--detail", "full").out]
    for name in ("out.html", "out.md"):
        assert gpureport("report", *asked, "-o", name).code == 0
        texts.append((two / name).read_text().replace("\N{NO-BREAK SPACE}", " "))
    assert [("249" in text, "2026-03-01" in text, "EUR" in text or "€" in text) for text in texts] == [(True,) * 3] * 3
    run = compare(gpureport, *asked)["steps"][0]["runs"][0]
    assert (run["gpu_hour_price"], run["currency"], run["price_date"]) == (3.0, "EUR", "2026-03-01")


def warnings_everywhere(gpureport: Program, *asked: str) -> list[str]:
    """Return the warnings of a comparison, which each format of it has."""
    warnings: list[str] = compare(gpureport, *asked)["warnings"]
    texts = [gpureport("compare", *asked, "--detail", detail).out for detail in ("short", "full")]
    assert gpureport("report", *asked, "-o", "a.md", "-o", "a.html", "-o", "a.json").code == 0
    texts += [Path(name).read_text() for name in ("a.md", "a.html", "a.json")]
    plain = [" ".join(unescape(text).replace("\N{NO-BREAK SPACE}", " ").split()) for text in texts]
    assert [(place, each) for place, text in enumerate(plain) for each in warnings if each not in text] == []
    return warnings


def test_doubts_on_a_recording_and_its_work_are_said_in_every_format(gpureport: Program, two: Path) -> None:
    for name, ended in (("base", 300_000_000), ("workers", None)):
        write_recording(two / name, log(300), ended=ended)
    (warning,) = warnings_everywhere(gpureport, "base", "workers")
    assert warning.startswith("workers ")
    assert warnings_everywhere(gpureport, "base", "before.csv") == []
    rows = [f"{_NINE + second},{second},100.0" for second in range(5, 300, 5)]
    (two / "metrics.csv").write_text("\n".join(["time,step,images_per_s", *rows, ""]))
    runs = ("before.csv", "after.csv", "--tz", "UTC", *("--training", "metrics.csv") * 2)
    (warning,) = warnings_everywhere(gpureport, *runs, "--work", "3000000:images")
    assert ("3,000,000" in warning, "29," in warning) == (True, True)
    assert warnings_everywhere(gpureport, *runs, "--work", "30000:images") == []

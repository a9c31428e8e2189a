"""The trial that the advice on a recording leads to, and jobs that a trial concerns."""

import gzip
import json
import re
import shlex
import shutil
from pathlib import Path

from tests.support.logs import SAMPLES, wavering, write_recording
from tests.support.program import Program
from tests.support.tables import read_table


def record(folder: Path, sample: str, command: str, params: str) -> None:
    """Write a sample, or a log with nothing to find, as a recording of a command."""
    log = SAMPLES / sample / "nvidia-smi.csv.gz"
    text = gzip.decompress(log.read_bytes()).decode() if sample else wavering(97)
    known = dict(pair.split("=", 1) for pair in params.split())
    write_recording(folder, text, command=shlex.split(command), params=known, ended=1, exit_code=0)
    if (host := log.with_name("host.csv")).exists():
        shutil.copy(host, folder)


def test_a_trial_is_suggested(gpureport: Program, tmp_path: Path) -> None:
    for place, row in enumerate(read_table(Path(__file__).with_name("suggested.tsv"))):
        record(tmp_path / f"{place}", *row[:3])
        done = gpureport("try", "--suggest", f"{place}")
        found = shlex.split(done.out)
        own = found.index("--") if found else 0
        said = re.findall(r"\((\w+)\)$", done.err, re.MULTILINE)
        printed = [" ".join(found[5:own:2]), done.out.partition(" -- ")[2].strip(), " ".join(said)]
        assert (printed, done.code) == (row[3:], 0 if found else 4), row


def decision(command: str, tied: list[str], changes: dict[str, float | None], **more: object) -> str:
    """Return a decision on the workers of a job. The first is the base, and the one tied first is best."""
    settings = [
        {"setting": {"w": value}, "change": change, "failure": None, "quality_fell": False}
        for value, change in changes.items()
    ]
    base, *_ = (each["setting"] for each in settings)
    known = [{"w": value} for value in tied]
    about = {"plan": {"command": shlex.split(command)}, "best": known[0] if known else None, "tied": known}
    own = {"trial": "sweep", "better": 1, "base": base, "settings": settings, "runs": [{"started": 1}]}
    return json.dumps(own | about | more)


TRIED = "python3 -u train.py --workers {w} --epochs 1"
DECISIONS = {
    "speeds": decision(TRIED, ["8"], {"2": None, "4": 0.25, "8": 0.5}),
    "older": decision(TRIED, ["1"], {"8": None, "1": 3.0}, runs=[{"started": 0}]),
    "durations": decision("./job.sh in={w} --fast", ["1"], {"0": None, "1": -0.5}, better=-1),
    "unclear": decision("unclear.py --jobs {w}", ["1", "2"], {"1": None, "2": 0.01, "3": -0.2}),
    "few_rounds": decision("few.py --jobs {w}", [], {"1": None, "2": None}),
    "failed": json.dumps({"schema": "gpureport.decision/1"}),
    "damaged": "[",
}


def test_jobs_with_slower_settings_are_named(gpureport: Program, tmp_path: Path) -> None:
    folder = tmp_path / ".gpureport" / "decisions"
    folder.mkdir(parents=True)
    for name, text in DECISIONS.items():
        (folder / f"{name}.json").write_text(text)
    rows = read_table(Path(__file__).with_name("slower.tsv"))
    for place, (command, _) in enumerate(rows):
        write_recording(tmp_path / f"job{place:02}", wavering(97 - place), command=shlex.split(command), ended=1)
    named = [f"job{place:02}" for place in range(len(rows))]
    told = [f"{name}: runs with {said} (slower_setting)." for name, (_, said) in zip(named, rows, strict=True) if said]
    night = gpureport("nightly", *named, "--site", "site").out
    assert [line.strip() for line in night.splitlines() if "slower_setting" in line] == told
    fleet = gpureport("fleet").err
    assert sorted(line for line in fleet.splitlines() if "slower_setting" in line) == told
    hidden = gpureport("fleet", "--anonymise")
    assert "slower_setting" not in hidden.err + hidden.out

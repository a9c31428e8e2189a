"""The trial that the advice on a recording leads to, and jobs that a trial concerns."""

import gzip
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.logs import SAMPLES, wavering, write_recording
from tests.support.program import Program
from tests.support.tables import read_table

HERE = Path(__file__).parent


def record(folder: Path, sample: str, command: str, params: str) -> None:
    """Write a sample, or a log with nothing to find, as a recording of a command."""
    log = SAMPLES / sample / "nvidia-smi.csv.gz"
    text = gzip.decompress(log.read_bytes()).decode() if sample else wavering(97)
    known = dict(pair.split("=", 1) for pair in params.split())
    write_recording(folder, text, command=shlex.split(command), params=known, ended=1, exit_code=0)
    if (host := log.with_name("host.csv")).exists():
        shutil.copy(host, folder)


def test_a_trial_is_suggested(gpureport: Program, tmp_path: Path) -> None:
    for place, each in enumerate(read_table(HERE / "suggested.tsv")):
        row = [cell.replace("RUN", f"{place}") for cell in each]
        record(tmp_path / f"{place}", *row[:3])
        done = gpureport("try", "--suggest", f"{place}")
        found = shlex.split(done.out)
        own = found.index("--") if found else 0
        said = re.findall(r"\((\w+)\)$", done.err, re.MULTILINE)
        printed = [" ".join(found[5:own:2]), done.out.partition(" -- ")[2].strip(), " ".join(said)]
        assert (printed, done.code) == (row[3:], 0 if found else 4), row


def test_jobs_with_slower_settings_are_named(gpureport: Program, tmp_path: Path) -> None:
    folder = tmp_path / ".gpureport" / "decisions"
    folder.mkdir(parents=True)
    for name, content in json.loads((HERE / "decisions.json").read_text()).items():
        (folder / f"{name}.json").write_text(json.dumps(content) if content != "damaged" else "[")
    rows = read_table(HERE / "slower.tsv")
    for place, (command, _) in enumerate(rows):
        write_recording(tmp_path / f"job{place:02}", wavering(97 - place), command=shlex.split(command), ended=1)
    named = [f"job{place:02}" for place in range(len(rows))]
    told = [f"{name}: runs with {said} (slower_setting)." for name, (_, said) in zip(named, rows, strict=True) if said]
    night = gpureport("nightly", *named, "--site", "site").out
    assert [line.strip() for line in night.splitlines() if "slower_setting" in line] == told
    assert (night.count("decisions/damaged.json cannot"), night.count("damaged_decision")) == (1, 2)
    assert sorted(line for line in gpureport("fleet").err.splitlines() if "slower_setting" in line) == told
    hidden = gpureport("fleet", "--anonymise")
    assert "slower_setting" not in hidden.err + hidden.out


@pytest.mark.slow
def test_decisions_are_kept_in_a_store(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys, time; time.sleep(2 / int(sys.argv[-1]))")
    job = ("--set", "workers=1,4", "--", sys.executable, "train.py", "--workers", "{workers}")
    tried = ("try", "-o", "sweep", "--host-only", "--interval", "0.2", "--repeat", "2")
    assert gpureport(*tried, *job).code == 0
    assert not (tmp_path / ".gpureport").exists()
    for store, named in ((".gpureport", ()), ("other", ("--store", "other"))):
        (tmp_path / ".gpureport").mkdir(exist_ok=True)
        for _ in range(2):
            assert gpureport(*tried, *named, *job).code == 0
        (kept,) = (tmp_path / store / "decisions").iterdir()
        content = json.loads((tmp_path / "sweep" / "decision.json").read_text())
        assert json.loads(kept.read_text()) == content | {"trial": "sweep"}
    write_recording(tmp_path / "base", wavering(), command=["python", "train.py", "--workers", "1"], ended=1)
    found = gpureport("nightly", "base", "--site", "site")
    assert re.search(r"base: runs with workers=1; trial sweep found workers=4 \d+% faster", found.out)

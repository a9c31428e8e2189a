"""Bad input: one line that says where and what, the right exit code and the code of the error; nothing left behind."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.trackers.mlflow.stores import Made, database, monitored, run_id
from tests.support.logs import HEADER, SAMPLE, gapped, log, stamp, table, write_recording
from tests.support.program import Program
from tests.support.tables import read_table, words_of

LONG = "9" * 5000


def prepare(folder: Path) -> None:
    shutil.copytree(Path(__file__).with_name("inputs"), folder, dirs_exist_ok=True)
    idle = (f"{stamp(second)}, 0, NVIDIA L4, 0 %, 3 MiB, 20.00 W" for second in range(300))
    texts = {"torn.csv": f"{log()}torn\n", "good.csv": log(), "good.txt": log(), "night.csv": gapped()}
    texts |= {"idle.csv": table(*idle), "deep.toml": "a = " + "[" * 100_000}
    # no file can have such a name, and Python cannot print such a number
    texts["steps11.toml"] = f"[[step]]\nlabel='a'\nruns={json.dumps(['good.csv', 'c' * 300, chr(0)])}"
    for place, number in ((12, LONG), (13, f"0x{LONG}")):
        texts[f"steps{place}.toml"] = f"[[step]]\nlabel='a'\nruns=['a']\nparams={{a={number}}}"
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (folder / "folder").mkdir()
    write_recording(folder / "rec", log(60), started=1, ended=2)
    database(folder / "mlflow.db", [Made(id=run_id(1), name="one", series=monitored(range(0, 600_000, 10_000)))])


def test_one_line_and_a_code(gpureport: Program, tmp_path: Path) -> None:
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for code, fault, where, named in read_table(Path(__file__).with_name("errors.tsv")):
        words = words_of(named, long=LONG, name="n" * 300)
        done = gpureport(*words)
        assert (str(done.code), done.out, done.err.count("\n")) == (code, "", 1), (named, done.err[:500])
        assert done.err.startswith(f"gpureport: {where}"), (named, done.err[:500])
        assert (done.err.rstrip("\n").isprintable(), "hunter2" in done.err) == (True, False), named
        debugged = gpureport("--debug", *words)
        assert (debugged.code, debugged.err.endswith(done.err)) == (done.code, True), named
        assert fault in {"-", debugged.error}, (named, debugged.error)
        assert sorted(tmp_path.rglob("*")) == before, named


def test_a_folder_is_read_without_the_log_that_cannot_be(gpureport: Program, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "headonly.csv").write_text(f"{HEADER}\n")
    assert gpureport("analyze", "logs").code == 3
    (folder / "good.csv").write_text(log(1200))
    (folder / "other.csv").write_text(log(1200, gpus=2).replace(" 09:", " 12:"))
    for command in (("analyze", "logs"), ("report", "logs", "-o", "out.html"), ("compare", "logs")):
        read = gpureport(*command)
        assert (read.code, read.err.count("left out: logs/headonly.csv: ")) == (0, 1), command
    assert gpureport("analyze", "logs", "--fail-on", "idle_ratio <= 50%").code == 3
    assert gpureport("analyze", "logs", "--strict").code == 3
    assert gpureport("check", "logs", "--fail-on", "idle_ratio <= 50%").code == 4


def test_one_line_however_it_is_asked_for(gpureport: Program, tmp_path: Path) -> None:
    for words in (("--debug", "analyze", "absent"), ("analyze", "absent", "--debug")):
        done = gpureport(*words)
        assert (done.code, done.error, "Traceback" in done.err) == (3, "unknown_run", True)
    for more, text in (([], "timestamp, uuid\n"), (["--source-kind", "mapped"], log())):
        command = [sys.executable, "-m", "gpureport", "analyze", "-", *more]
        piped = subprocess.run(command, input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (piped.returncode, piped.stderr.startswith("gpureport: -: ")) == (3, True)


@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
@pytest.mark.parametrize("browser", [True, False])
def test_a_page_is_opened_where_there_is_a_browser(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, *, browser: bool
) -> None:
    opened: list[str] = []

    def launch(path: str) -> int:
        opened.append(path)
        return int(not browser)

    monkeypatch.setattr("click.launch", launch)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0" if browser else "")
    done = gpureport("report", str(SAMPLE), "-o", "first.json", "-o", name, "--open")
    assert (done.code, opened, "No browser" in done.err) == (0, [name] * browser, not browser)
    assert (tmp_path / name).is_file()

"""Errors, files and the time to start, as the API and the command line have them."""

import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import GpureportError, InternalError, SettingsError, SourceError
from gpureport.testing import Quality, Rejected, recording
from tests.support.logs import SAMPLE


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("--by", "no run has it", "name another"),
        SourceError("a.csv", "no rows", "give a log", "an example"),
        InternalError("a.csv", ValueError("odd")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_go_to_another_process(error: GpureportError) -> None:
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert type(other) is type(error)
    assert (str(other), other.where, other.what, other.hint) == (str(error), error.where, error.what, error.hint)
    assert getattr(other, "aside", None) == getattr(error, "aside", None)


def test_an_error_is_a_line_and_not_a_book() -> None:
    error = SettingsError("gpureport.toml:4", f"{'x' * 100_000}' is no limit", "write one such as 'idle_ratio <= 5%'")
    assert len(str(error)) < 5000
    assert str(error).startswith("gpureport.toml:4: xxx")
    assert str(error).endswith("x' is no limit; write one such as 'idle_ratio <= 5%'")


PRICE = '[prices]\ncurrency = "EUR"\ndate = "2026-03-14"\ngpu_hour = 2.0\n'
LOG = "timestamp, index, utilization.gpu [%]\n" + "".join(f"2026/03/14 09:00:{s:02}.000, 0, 97 %\n" for s in range(60))


def make(path: Path, what: str) -> None:
    if what == "socket":
        # the path of a socket holds 107 bytes at most
        here = Path.cwd()
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "large":
        path.touch()
        os.truncate(path, 20_000_000_000)
    else:
        path.mkdir()


def test_a_pipe_is_read_while_somebody_writes_to_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(PRICE,))
    writer.start()
    cost = gpureport.analyze(recording(util=[50.0] * 60), settings=pipe).cost
    writer.join()
    assert cost is not None


def test_folders_of_logs_are_searched_only_so_deep(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 200).mkdir(parents=True)
    with pytest.raises(SourceError):
        gpureport.read(tmp_path)


def test_settings_and_folders_that_are_none(tmp_path: Path) -> None:
    run = recording(util=[50.0] * 60)
    for what in ("socket", "device", "folder", "large"):
        make(tmp_path / what, what)
        with pytest.raises(SettingsError):
            gpureport.analyze(run, settings=tmp_path / what)
    (tmp_path / "gpu.csv").write_text(LOG)
    for text in ("", "{", "[]", "{}", '{"schema": "gpureport.record/1"}', '{"schema": "other"}'):
        (tmp_path / "run.json").write_text(text)
        (run,) = gpureport.read(tmp_path)
        assert (len(run.series), run.run.params) == (60, ()), text


def test_rows_are_found_by_device_and_the_account_adds_up() -> None:
    run = recording(util=[[50.0] * 3, [60.0] * 3])
    assert {device: len(rows) for device, rows in run.by_device().items()} == {"gpu:0": 3, "gpu:1": 3}
    assert (len(run.rows_of("gpu:1")), len(run.rows_of("host"))) == (3, 0)
    assert run.with_series(run.series.slice(0, 0)).by_device() == {}
    rejected = (Rejected(reason="x", rows=2, first_line=3),)
    counts = {10: True, 11: False}
    for lines, accounted in counts.items():
        account = Quality(lines=lines, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1)
        assert account.accounted is accounted, lines


HEAVY = ("pandas", "pyarrow", "scipy", "matplotlib", "jinja2", "mlflow", "neptune", "numpy", "typst")
NOT_FOR_ANALYSIS = ("pandas", "matplotlib", "mlflow", "neptune", "typst")

_PROBE = """
import sys
sys.argv = {argv!r}
try:
    from gpureport.cli import main
    {call}
except SystemExit as stop:
    if stop.code:
        raise
print(*sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    """Return the top-level modules a command has loaded when it ends; without arguments, those of the import."""
    call = "main()" if arguments else "pass"
    code = _PROBE.format(argv=["gpureport", *arguments], call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [(), ("--help",), ("--version",), ("compare", "--help"), ("explain", "--help")],
    ids=["import", "help", "version", "compare", "explain"],
)
def test_start_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments) & set(HEAVY) == set()


def test_analyze_loads_no_frames_and_no_charts() -> None:
    assert loaded("analyze", str(SAMPLE), "--format", "json") & set(NOT_FOR_ANALYSIS) == set()


@pytest.mark.parametrize(("name", "ours"), [("OPENBLAS_NUM_THREADS", "1"), ("MIMALLOC_ALLOW_THP", "0")])
@pytest.mark.parametrize("given", [None, "3"])
def test_libraries_are_told_what_suits_small_work(name: str, ours: str, given: str | None) -> None:
    code = "import os, sys; sys.argv = ['gpureport', '--version']\nfrom gpureport.cli import main\ntry: main()\n"
    code += f"finally: print(os.environ[{name!r}])"
    environment = {other: value for other, value in os.environ.items() if other != name}
    environment |= {name: given} if given else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == (given or ours)

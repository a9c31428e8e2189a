"""Stamps and headings in every spelling."""

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.testing import Recording
from tests.readers.conftest import Hold
from tests.support.logs import HEADER, gpustat_document, iso_stamp, read, read_text, stamp
from tests.support.tables import read_table


def spelled(sort: str) -> list[str]:
    return [text for each, text in read_table(Path(__file__).with_name("spellings.tsv")) if each == sort]


def rows(folder: Path, *stamps: str, delimiter: str = ", ") -> Recording:
    """Return a log of rows with these stamps."""
    lines = [delimiter.join([each, "5 %"]) for each in stamps]
    return read_text(folder, "\n".join([f"timestamp{delimiter}utilization.gpu [%]", *lines, ""]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))
def test_any_moment_survives(tmp_path: Path, moment: datetime) -> None:
    found = rows(tmp_path, f"{moment:%Y/%m/%d %H:%M:%S.%f}").run.started
    assert found == (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def test_spellings_of_moments(tmp_path: Path, hold: Hold) -> None:
    for text in spelled("query"):
        hold(text, partial(rows, tmp_path, text))
    for text in spelled("semicolons"):
        hold(text, partial(rows, tmp_path, text, text, delimiter=";"))
    document = gpustat_document(0, indent=None)
    for text in spelled("JSON"):
        hold(f"JSON {text}", partial(read_text, tmp_path, document.replace(iso_stamp(0), text)))


def night(folder: Path, *spans: tuple[float, float], zone: str | None = "Europe/Berlin") -> Recording:
    """Return rows of two GPUs, one a minute, in some hours of the night in which summer time ends."""
    rows = [
        f"{datetime(2026, 10, 25) + timedelta(minutes=minute):%Y/%m/%d %H:%M:%S}.000, {gpu}, NVIDIA L4, 9 %, 1 MiB, 2 W"
        for first, last in spans
        for minute in range(int(first * 60), int(last * 60))
        for gpu in (0, 1)
    ]
    return read_text(folder, "\n".join([HEADER, *rows, ""]), **({} if zone is None else {"tz": zone}))


def test_rows_of_which_nothing_says_which_hour_are_noted(tmp_path: Path, hold: Hold) -> None:
    spans: dict[str, list[tuple[float, float]]] = {
        "after it": [(2.25, 2.5)],
        "both": [(1.5, 3.5)],
        "paused before it": [(0.5, 1.5), (2.25, 2.5)],
        "the rows themselves tell": [(1.5, 3), (2, 3.5)],
        "later": [(3, 5)],
    }
    for name, each in spans.items():
        hold(name, partial(night, tmp_path, *each))
    for zone in (None, "UTC"):
        hold(f"{zone}", partial(night, tmp_path, (2.25, 2.5), zone=zone))


GPU = "gpu.csv"


def test_headings_of_gpus(tmp_path: Path, hold: Hold) -> None:
    for heading in spelled("heading of a GPU"):
        lines = "".join(f"{stamp(second)}, 5 %, 50\n" for second in range(9))
        hold(heading, partial(read_text, tmp_path, f"timestamp, utilization.gpu [%], {heading}\n{lines}"))


def host(folder: Path, text: str, tz: str | None = "UTC") -> Recording:
    """Return the rows of a CSV of a machine, read beside a log of a GPU."""
    (folder / GPU).write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp(at)}, 5 %\n" for at in (0, 9)))
    (folder / "host.csv").write_text(text)
    return read(folder / GPU, host=folder / "host.csv", tz=tz)


def test_headings_of_machines(tmp_path: Path, hold: Hold) -> None:
    for heading in spelled("heading of a machine"):
        text = f"unix,load5,load1,{heading}\n1773478801,2,3,30\n1773478802,2,3,30\n"
        hold(heading, partial(host, tmp_path, text))


def test_stamps_of_machines(tmp_path: Path, hold: Hold) -> None:
    for text in spelled("machine"):
        hold(text, partial(host, tmp_path, f"time,cpu_percent\n{text},30\n"))
    for text in ("2026/03/14 09:00:01", "2026-02-30 09:00:01", "17", ""):
        hold(f"no zone {text}", partial(host, tmp_path, f"time,cpu_percent\n{text},30\n", None))
    for header in ("timestamp, index, utilization.gpu [%], memory.used [MiB]", "epoch,loss", "cpu,ram"):
        hold(header, partial(host, tmp_path, f"{header}\n1,2,3,4\n"))

"""`gpureport ingest --explain`: how a source was understood, with nothing stored."""

import gzip
import io
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.logs.nvidia_smi.forms.monitor_logs import dmon, process_list
from tests.importers.two_writers import interleaved
from tests.importers.written_logs import HEADER, log, row, series, stamp


def dirty() -> str:
    """Return a log with rejected lines of several reasons, a gap and a message."""
    lines = [HEADER, row(0), "garbage", "----", row(1), row(2).replace("90 %", "9x %"), "No devices were found"]
    return "\n".join([*lines, *(row(second) for second in range(3, 20)), row(100), ""])


def section(out: str, name: str) -> list[str]:
    """Return the lines below one heading, their indent taken off."""
    lines = out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"  {name}"))
    found = []
    for line in lines[start + 1 :]:
        if not line.startswith("    "):
            break
        found.append(line[4:])
    return found


def test_everything_is_told(gpureport: Program, tmp_path: Path) -> None:
    """File, columns with an example, GPUs, times, and every line; the first rejected one as it stands."""
    (tmp_path / "gpu.csv").write_text(dirty())
    outcome = gpureport("ingest", "gpu.csv", "--explain", "--name", "mine")
    assert outcome.code == 0
    assert outcome.out == (
        "mine: 1 GPU, 1 min 40 s, a sample every 1 s\n"
        "gpu.csv\n"
        "  kind: nvidia-smi, by its content\n"
        f"  file: {len(dirty()):,} bytes; UTF-8; lines end with LF; cells separated by commas\n"
        "  columns: as its header says\n"
        "    timestamp            time of the row                 2026/03/14 09:00:00.000 -> 2026-03-14 09:00:00.000\n"
        "    index                identifies the GPU              0\n"
        "    name                 GPU attribute: model            NVIDIA L4\n"
        "    utilization.gpu [%]  gpu_utilization_ratio [0 to 1]  90 % -> 0.9\n"
        "    memory.used [MiB]    gpu_memory_used_bytes [bytes]   1024 MiB -> 1073741824\n"
        "    power.draw [W]       gpu_power_watts [W]             250.00 W -> 250\n"
        "  GPUs: 1, identified by index\n"
        "    gpu:0: NVIDIA L4, 20 rows\n"
        "  time: zone unknown: local time of the recording machine (--tz names the zone)\n"
        "    2026-03-14 09:00:00.000 to 2026-03-14 09:01:40.000, median interval 1 s\n"
        "    1 gap without samples, 81 s over all GPUs\n"
        "      81 s from 2026-03-14 09:00:19.000 on (gpu:0)\n"
        "    stamps never run backwards\n"
        "  lines:\n"
        "    25 lines = 20 rows kept + 2 rejected + 1 header + 1 noise + 1 event\n"
        "    rejected 1: malformed utilization.gpu (first at line 6)\n"
        "      2026/03/14 09:00:02.000, 0, NVIDIA L4, 9x %, 1024 MiB, 250.00 W\n"
        "    rejected 1: wrong number of cells (first at line 3)\n"
        "      garbage\n"
        "    no devices, 1 s after the first sample: No devices were found (line 7)\n"
        "Not stored.\n"
    )


def test_blocks_are_told(gpureport: Program, tmp_path: Path) -> None:
    """Of a log of several forms each block is named, with the line that says what it is."""
    (tmp_path / "all.log").write_text("job 7\n" + dmon(3) + "$ nvidia-smi pmon -o DT\n" + process_list(2, start=60))
    out = gpureport("ingest", "all.log", "--explain").out
    assert out.splitlines()[2:5] == [
        "  kind: nvidia-smi, by its content",
        f"  file: {(tmp_path / 'all.log').stat().st_size} bytes; UTF-8; lines end with LF",
        "  columns: as nvidia-smi dmon writes them, then as nvidia-smi pmon writes them",
    ]
    told = [" ".join(line.split()) for line in section(out, "blocks: 4")]
    assert [line for line in told if line.startswith("line")] == [
        "line 1: text, 0 rows in 1 lines",
        "line 2: nvidia-smi dmon, 3 rows in 5 lines",
        "line 7: text, 0 rows in 1 lines",
        "line 8: nvidia-smi pmon, 2 rows in 6 lines",
    ]
    assert "it begins #Date Time gpu pwr gtemp" in told[3]
    assert "it begins $ nvidia-smi pmon -o DT" in told[5]


def test_nothing_is_stored(gpureport: Program, tmp_path: Path) -> None:
    """No store is made, and one that is there keeps its runs."""
    (tmp_path / "gpu.csv").write_text(log())
    gpureport("ingest", "gpu.csv", "--explain")
    assert [path.name for path in tmp_path.iterdir()] == ["gpu.csv"]
    gpureport("ingest", "gpu.csv", "--name", "kept")
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
    gpureport("ingest", "gpu.csv", "--explain", "--force", "--name", "other")
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(log().encode(), mtime=0), "gzip; UTF-8; lines end with LF; cells separated by commas"),
        (log().encode("utf-16"), "UTF-16-LE with a byte order mark; lines end with LF; cells separated by commas"),
        (log().encode("utf-16-be"), "UTF-16-BE; lines end with LF; cells separated by commas"),
        (log().replace("\n", "\r\n").encode(), "UTF-8; lines end with CRLF; cells separated by commas"),
        (log().replace("\n", "\r").encode(), "UTF-8; lines end with CR; cells separated by commas"),
        (log(20).replace("\n", "\r\n", 5).encode(), "UTF-8; lines end with 16 LF, 5 CRLF; cells separated by commas"),
        (
            log().replace(",", ";").replace("250.00", "250,00").encode(),
            "UTF-8; lines end with LF; cells separated by semicolons, decimal commas",
        ),
        (log().replace(", ", "\t").encode(), "UTF-8; lines end with LF; cells separated by tabulators"),
    ],
)
def test_the_form_of_a_file_is_told(gpureport: Program, tmp_path: Path, content: bytes, told: str) -> None:
    """Compression, encoding, line ends and delimiter."""
    (tmp_path / "gpu.csv").write_bytes(content)
    (line,) = (line for line in gpureport("ingest", "gpu.csv", "--explain").out.splitlines() if "file:" in line)
    assert line.partition(" bytes")[2].lstrip(",; ") == told


def test_columns_of_every_sort_are_named(gpureport: Program, tmp_path: Path) -> None:
    """Hand-written headings, assumed units, masks, flags, extras, old spellings, and a column without any value."""
    headings = "timestamp,uuid,gpu_util%,memory.used,clocks_throttle_reasons.active,"
    headings += "clocks_event_reasons.sw_power_cap,driver_version,power.draw,foo"
    cells = "GPU-5a3e17c0-0000-4000-8000-000000000000,93,1024,0x0000000000000024,Active,580.1,[N/A],bar"
    (tmp_path / "gpu.csv").write_text("\n".join([headings, *(f"{stamp(n)},{cells}" for n in range(5)), ""]))
    told = [line.split("  ") for line in section(gpureport("ingest", "gpu.csv", "--explain").out, "columns")]
    assert [[part.strip() for part in line if part] for line in told][1:] == [
        ["uuid", "identifies the GPU", "GPU-5a3e17c0-0000-4000-8000-000000000000"],
        ["gpu_util% = utilization.gpu [%]", "gpu_utilization_ratio [0 to 1]", "93 -> 0.93"],
        ["memory.used", "gpu_memory_used_bytes [bytes]", "1024 (taken as MiB) -> 1073741824"],
        [
            "clocks_throttle_reasons.active = clocks_event_reasons.active",
            "clock_event_* (a column a bit)",
            "0x0000000000000024 -> sw_power_cap, sw_thermal_slowdown",
        ],
        ["clocks_event_reasons.sw_power_cap", "clock_event_sw_power_cap", "Active -> yes"],
        ["driver_version", "GPU attribute: driver", "580.1"],
        ["power.draw", "gpu_power_watts [W]"],
        ["foo", "extra_foo (kept as text)", "bar"],
    ]


def test_an_example_is_a_cell_that_is_not_zero(gpureport: Program, tmp_path: Path) -> None:
    """A zero shows nothing of a unit, so the first other value is taken, of the line it stands on."""
    rows = [row(0, util=0, power="[N/A]"), "torn", row(1, util=0), row(2, util=7, power="1.50 kW")]
    (tmp_path / "gpu.csv").write_text("\n".join([HEADER, *rows, ""]))
    told = section(gpureport("ingest", "gpu.csv", "--explain").out, "columns")
    assert [line.split("  ")[-1].strip() for line in (told[3], told[5])] == ["7 % -> 0.07", "250.00 W -> 250"]


def test_large_values_are_written_out(gpureport: Program, tmp_path: Path) -> None:
    """Bytes have no exponent, also in a column of so many values that they are read at once."""
    rows = [row(n % 3600).replace("1024 MiB", f"{81_000 + n} MiB") for n in range(30_000)]
    (tmp_path / "gpu.csv").write_text("\n".join([HEADER, *rows, ""]))
    told = section(gpureport("ingest", "gpu.csv", "--explain").out, "columns")
    assert told[4].endswith("81000 MiB -> 84934656000")


def test_named_columns_are_told(gpureport: Program, tmp_path: Path) -> None:
    """Of a log without a header it is said that a person named its columns."""
    rows = [", ".join(cells) for cells in zip(*series().values(), strict=True)]
    (tmp_path / "gpu.csv").write_text("\n".join([*rows, ""]))
    names = ",".join(heading.partition(" ")[0] for heading in series())
    out = gpureport("ingest", "gpu.csv", "--explain", "--columns", names).out
    assert "  kind: nvidia-smi, as the options say\n" in out
    assert "  columns: as --columns says\n" in out


def test_what_told_the_gpus_apart(gpureport: Program, tmp_path: Path) -> None:
    """By a column, by the place in the tick with its evidence, or by nothing."""
    (tmp_path / "index.csv").write_text(log(gpus=2))
    assert "  GPUs: 2, identified by index\n" in gpureport("ingest", "index.csv", "--explain").out
    ticks = [f"{stamp(n + gpu / 500)}, {10 * gpu + n % 7} %" for n in range(50) for gpu in range(3)]
    (tmp_path / "ticks.csv").write_text("\n".join(["timestamp, utilization.gpu [%]", *ticks, ""]))
    out = gpureport("ingest", "ticks.csv", "--explain").out
    assert "  GPUs: 3, identified by their place in the tick\n" in out
    assert out.count("49 of 49 ticks hold 3 rows; high confidence") == 1
    (tmp_path / "one.csv").write_text("\n".join(["timestamp, utilization.gpu [%]", *ticks[::3], ""]))
    assert (
        "  GPUs: 1, no column identifies it: read as the only one\n" in gpureport("ingest", "one.csv", "--explain").out
    )


def test_gpus_that_nothing_tells_apart_are_said_to_be_that(gpureport: Program, tmp_path: Path) -> None:
    """Rows in bunches of changing size are several GPUs that are kept as one; two writers keep theirs apart."""
    rows = [f"{stamp(n + gpu / 500)}, {(7 * n + gpu) % 90} %" for n in range(60) for gpu in range(2 + n % 3)]
    (tmp_path / "mixed.csv").write_text("\n".join(["timestamp, utilization.gpu [%]", *rows, ""]))
    out = gpureport("ingest", "mixed.csv", "--explain").out
    assert "  GPUs: 1, perhaps several: no column identifies them\n" in out
    assert out.count("--gpus-per-tick says how many there are.") == 1
    late = {0.0: 90, 0.4: 40}
    logs = [[(second + by, row(second + by, util=util)) for second in range(500)] for by, util in late.items()]
    (tmp_path / "two.csv").write_bytes(HEADER.encode() + b"\n" + interleaved(logs))
    out = gpureport("ingest", "two.csv", "--explain").out
    assert "  GPUs: 2, identified by index and by the process that wrote them\n    writer_1/gpu:0: NVIDIA L4, 5" in out
    assert out.count("2 writers wrote to the log at once") == 1


def test_a_row_left_out_late_is_shown_as_it_stands(gpureport: Program, tmp_path: Path) -> None:
    """Rows that were whole but have no place are looked up in the log, compressed or not."""
    rows = [row(second) for second in range(20)]
    (tmp_path / "gpu.csv.gz").write_bytes(gzip.compress("\n".join([HEADER, *rows, *rows, ""]).encode()))
    lines = section(gpureport("ingest", "gpu.csv.gz", "--explain").out, "lines")
    assert lines[1:] == ["rejected 20: duplicate segment (first at line 22)", f"  {row(0)}"]


def test_backward_stamps_are_told_where_the_time_is(gpureport: Program, tmp_path: Path) -> None:
    """Why the stamps run backwards, when, and what was done; once."""
    rows = [*(row(second) for second in range(100, 200)), *(row(second) for second in range(150, 250))]
    (tmp_path / "gpu.csv").write_text("\n".join([HEADER, *rows, ""]))
    out = gpureport("ingest", "gpu.csv", "--explain").out
    told = section(out, "time")
    assert told[2:] == [
        "stamps run backwards",
        "  -49.0 s at 2026-03-14 09:03:20.000 (gpu:0): clock set back; later ones shifted by +50.0 s",
    ]
    assert out.count("clock set back") == 1


def test_a_zone_is_told_with_the_times(gpureport: Program, tmp_path: Path) -> None:
    """With --tz times have their offset."""
    (tmp_path / "gpu.csv").write_text(log(10))
    told = gpureport("ingest", "gpu.csv", "--explain", "--tz", "Europe/Berlin").out
    assert "  time: zone Europe/Berlin, as --tz says\n    2026-03-14 09:00:00.000+01:00 to " in told


def test_a_log_without_stamps_says_so(gpureport: Program, tmp_path: Path) -> None:
    """Times counted from --interval are no recorded ones."""
    (tmp_path / "gpu.csv").write_text("index, utilization.gpu [%]\n" + "0, 5 %\n" * 10)
    told = gpureport("ingest", "gpu.csv", "--explain", "--interval", "5").out
    assert "  time: no time stamps; counted from --interval, 0 to 45 s\n" in told


def test_a_host_log_and_several_logs_are_each_told(gpureport: Program, tmp_path: Path) -> None:
    """Every source has its part; together they add up."""
    (tmp_path / "gpu.csv").write_text(log(20))
    (tmp_path / "gpu.csv.1").write_text("\n".join([HEADER, *(row(second) for second in range(18, 40)), "bad", ""]))
    (tmp_path / "host.csv").write_text("timestamp,cpu_percent\n2026-03-14T09:00:00,5\n2026-03-14T09:00:30,6\n")
    out = gpureport("ingest", "gpu.csv", "gpu.csv.1", "--host", "host.csv", "--as-one-run", "--explain").out
    assert [line for line in out.splitlines() if not line.startswith(" ")][1:] == [
        *("gpu.csv", "gpu.csv.1", "host.csv"),
        *("together", "Not stored."),
    ]
    assert "    gpu:0: NVIDIA L4, 40 rows in all logs\n" in out
    assert "    rejected 2: recorded in the log before as well\n" in out
    assert "    cpu_percent  cpu_utilization_ratio [0 to 1]  5 -> 0.05\n" in out
    assert "  device: the machine\n    host: 2 rows\n" in out
    assert "together\n  48 lines = 42 rows kept + 3 rejected + 3 headers + 0 noise + 0 events\n" in out


def test_standard_input_is_explained(gpureport: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is understood as a file is."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log().encode())))
    out = gpureport("ingest", "-", "--explain").out
    assert out.startswith("standard input: 1 GPU, 19 s, a sample every 1 s\n-\n")


def test_a_log_that_cannot_be_read_keeps_its_exit_code(gpureport: Program, tmp_path: Path) -> None:
    """Errors and codes are those of ingest."""
    (tmp_path / "gpu.csv").write_text("utilization.gpu [%]\n5 %\n")
    explained, ingested = gpureport("ingest", "gpu.csv", "--explain"), gpureport("ingest", "gpu.csv")
    assert (explained.code, explained.err) == (ingested.code, ingested.err) == (3, ingested.err)
    (tmp_path / "good.csv").write_text(dirty())
    assert gpureport("ingest", "good.csv", "--explain", "--strict").code == 3


def test_a_hostile_log_does_not_steer_the_terminal(gpureport: Program, tmp_path: Path) -> None:
    """Cells, headings and rejected lines are shortened and printable."""
    lines = [HEADER + ", bad", row(0) + ", \x1b[31mred", "x\x1b]0;owned\x07" + "y" * 500, row(1) + ", \x1b[31mred", ""]
    (tmp_path / "gpu.csv").write_text("\n".join(lines))
    out = gpureport("ingest", "gpu.csv", "--explain").out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert max(map(len, out.splitlines())) < 160

"""Which importer reads a path, and what is said when none does."""

import bz2
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import HOST_IMPORTERS, IMPORTERS, find_runs
from gpureport.importers.decoding.pieces import head
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import HEAD_BYTES
from tests.importers.written_logs import log, read

HOST = "timestamp,cpu_percent\n2026-03-14T09:00:00.000,50\n2026-03-14T09:00:01.000,52\n"


def refused(path: Path) -> str:
    """Return the message a path is refused with."""
    with pytest.raises(SourceError) as caught:
        find_runs(path)
    return str(caught.value)


def test_one_importer_a_source() -> None:
    """No two importers claim the same first bytes."""
    for begins in (log().encode(), HOST.encode(), b"\x89PNG\r\n\x1a\n", b"a,b\n1,2\n"):
        assert sum(importer.identify(begins) for importer in (*IMPORTERS, *HOST_IMPORTERS)) <= 1


def test_no_sample_is_claimed_twice() -> None:
    """Each log of the samples is of one kind, and their other files are of none."""
    samples = Path(__file__).parents[3] / "sample_logs"
    claims = {
        path.relative_to(samples).as_posix(): [
            each.kind for each in (*IMPORTERS, *HOST_IMPORTERS) if each.identify(head(RawFile(path), HEAD_BYTES))
        ]
        for path in samples.rglob("*")
        if path.is_file()
    }
    assert [name for name, kinds in claims.items() if len(kinds) > 1] == []
    other = (
        ".md",
        "expected.json",
        "/training.csv",
        "truth.json",
        "run.json",
        ".tar.gz",
        "mapped/map.toml",
        "mapped/wrapper.csv",
    )
    assert [name for name, kinds in claims.items() if bool(kinds) == name.endswith(other)] == []


def test_a_missing_file(tmp_path: Path) -> None:
    """A path that is not there is named."""
    assert refused(tmp_path / "absent.csv").endswith("absent.csv: no such file; check the path")


@pytest.mark.parametrize("address", ["sqlite:////srv/mlflow.db", "http://localhost:5000", "file:///srv/mlruns"])
def test_the_address_of_a_tracker(address: str) -> None:
    """A person who takes it from the tracker is told what is missing before it."""
    with pytest.raises(SourceError, match="put mlflow: before the address"):
        find_runs(address)


def test_xml_of_others_is_no_log(tmp_path: Path) -> None:
    """What `sadf -x` or a test runner wrote is not taken for what nvidia-smi writes."""
    path = tmp_path / "tests.xml"
    path.write_text('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite name="a"/>\n</testsuites>\n')
    assert "not a recognised GPU log" in refused(path)


def test_an_empty_file(tmp_path: Path) -> None:
    """An empty file is called empty."""
    (tmp_path / "empty.csv").touch()
    assert "the file is empty" in refused(tmp_path / "empty.csv")


def test_a_first_line_with_tabs_is_shown(tmp_path: Path) -> None:
    """What a tool prints that is not read is text, whatever parts its cells."""
    (tmp_path / "log.txt").write_text("node1\t1\tall\t%user\t50.25\n")
    assert "(first line: node1 1 all %user 50.25)" in refused(tmp_path / "log.txt")


def test_blank_lines_above_a_text(tmp_path: Path) -> None:
    """A text that begins with blank lines, as the help of nvidia-smi does, is shown by the first one with words."""
    (tmp_path / "log.txt").write_text("\n \n    GPU statistics are displayed in scrolling format\n")
    assert "(first line: GPU statistics are displayed in scrolling format)" in refused(tmp_path / "log.txt")


def test_a_folder_with_runs_of_neptune(tmp_path: Path) -> None:
    """The folder in which Neptune's client was started is not its store; the message says where that is."""
    (tmp_path / ".neptune" / "offline").mkdir(parents=True)
    with pytest.raises(SourceError, match="holds runs of Neptune's client") as raised:
        read(tmp_path)
    assert raised.value.hint == f"give {tmp_path / '.neptune'}"


def test_a_picture(tmp_path: Path) -> None:
    """Binary content is not printed."""
    (tmp_path / "log.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "not a text log" in refused(tmp_path / "log.csv")


def test_a_csv_of_something_else(tmp_path: Path) -> None:
    """Another CSV is shown by its first line."""
    (tmp_path / "sales.csv").write_text("region,sales\nnorth,3\n")
    assert "not a recognised GPU log (first line: region,sales)" in refused(tmp_path / "sales.csv")


PROSE = "Epoch 3/100, step 1200: loss=0.43, gpu memory 1024 MiB\n  [rank0] 0.42 s\n2026-03-14 saved, /out/a\n"


@pytest.mark.parametrize("repeats", [600, 1_000, 40_000])
def test_a_log_below_the_output_of_a_job(tmp_path: Path, repeats: int) -> None:
    """A header is looked for up to 4 MiB down, and what it leaves open is told by the lines around it."""
    table = log(50).replace("utilization.gpu [%]", "utilization.gpu").replace("90 %", "0.97").replace("0.97", "0", 9)
    (tmp_path / "job.out").write_text(PROSE * repeats + table)
    recording = read(tmp_path / "job.out")
    quality = recording.run.quality
    assert (quality.rows_kept, quality.headers, quality.rejected[0].rows) == (50, 1, 3 * repeats)
    assert [note for note in quality.notes if note.startswith("utilization.gpu has no unit")]
    assert "gpu_utilization_ratio" not in recording.series.column_names


def test_what_is_no_log_is_not_searched_to_its_end(tmp_path: Path) -> None:
    """A header deeper than that is not found, and neither is one in what is no text."""
    path = tmp_path / "job.out"
    path.write_text(PROSE * 60_000 + log(50))
    assert "not a recognised GPU log (first line: Epoch 3/100" in refused(path)
    path.write_bytes(b"\xff\xfa\x81" * 30_000 + b"\n" + log(50).encode())
    assert "not a text log" in refused(path)


@pytest.mark.parametrize("text", [b"," * 5_000_000, b"time,cpu," + b"mem_b," * 10_000, b"/," * 2_500_000])
def test_a_line_without_end_is_refused(tmp_path: Path, text: bytes) -> None:
    """A few bytes that stand for a line of millions of cells are no log."""
    path = tmp_path / "log"
    path.write_bytes(bz2.compress(text))
    assert "log" in refused(path)


def test_a_folder_without_logs(tmp_path: Path) -> None:
    """A folder that holds none says so."""
    (tmp_path / "notes.txt").write_text("nothing")
    assert "the folder holds no log of a known kind" in refused(tmp_path)


def test_a_file_one_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without permission is named as such."""
    path = tmp_path / "locked.csv"
    path.write_text(log())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # root may read every file, so the refusal is played
    monkeypatch.setattr(Path, "open", refuse)
    assert "no permission to read it" in refused(path)


def test_a_host_log_and_one_of_gpus_confused(tmp_path: Path) -> None:
    """Each is called what it is, and where it goes."""
    gpu, host, other = (tmp_path / name for name in ("gpu.csv", "host.csv", "other.txt"))
    gpu.write_text(log())
    host.write_text(HOST)
    other.write_text("x\n")
    with pytest.raises(SourceError, match=r"gpu.csv: named as a source and with --host; name every log once"):
        find_runs(gpu, [gpu])
    with pytest.raises(
        SourceError,
        match=r"other.txt: not a recognised host log .*; give what sar, .*, or a CSV with a timestamp and cpu",
    ):
        find_runs(gpu, [other])
    said = (
        "host.csv: a host log, which says nothing of GPUs; give the log of the GPUs as a source, and this one with --"
    )
    assert said in refused(host)
    gpu.unlink()
    assert "the folder holds a host log (host.csv) and no log of GPUs; gpureport record -- COMMAND" in refused(tmp_path)


def test_a_host_log_joins_the_only_log_of_its_folder(tmp_path: Path) -> None:
    """A folder's host CSV belongs to its log; each folder below is a run of its own."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nvidia-smi.csv").write_text(log())
    (tmp_path / "a" / "host.csv").write_text(HOST)
    runs = find_runs(tmp_path)
    assert [[each.importer.kind for each in inputs] for inputs in runs] == [["nvidia_smi", "host"], ["nvidia_smi"]]


def test_a_host_log_between_two_logs_belongs_to_none(tmp_path: Path) -> None:
    """With two logs in a folder nobody can say whose the host CSV is."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(log())
    (tmp_path / "host.csv").write_text(HOST)
    assert [len(inputs) for inputs in find_runs(tmp_path)] == [1, 1]


@pytest.mark.parametrize("header", ["timestamp,name,value", "timestamp,index,loss", "timestamp,index,name,serial"])
def test_a_table_of_something_else_beside_a_log(tmp_path: Path, header: str) -> None:
    """A CSV with columns that any table may have is no log, and does not keep the host CSV from joining."""
    (tmp_path / "gpu.csv").write_text(log())
    (tmp_path / "host.csv").write_text(HOST)
    (tmp_path / "train.csv").write_text(f"{header}\n2026/03/14 09:00:00.000,0,1\n")
    (run,) = find_runs(tmp_path)
    assert [each.path.name for each in run] == ["gpu.csv", "host.csv"]

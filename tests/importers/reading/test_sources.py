"""Which files are logs, which of a folder are read, and what is refused with what to do instead."""

import bz2
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SourceError
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.support.logs import PACKED, log, read, read_text, write

HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02}.000,50\n" for second in range(20))
RUN = Made(id=run_id(1), name="baseline", series=monitored([10_000, 20_000, 30_000]))
PROSE = "Epoch 3/100, step 1200: loss=0.43, gpu memory 1024 MiB\n  [rank0] 0.42 s\n2026-03-14 saved, /out/a\n"
REFUSED = {
    "": "gpureport record",
    "No devices were found\n": "until nvidia-smi by itself shows a table",
    "Failed to initialize NVML: Driver/library version mismatch\n": "record again",
    "bash: nvidia-smi: command not found\n": "record again",
    'Field "clock.sm" is not a valid field to query.\n\n': "leave that field out",
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n": "git lfs pull",
    "Wall time,Step,Value\n1700000000.5,1,0.3\n": "--training",
    '"Step","run-1 - train/loss"\n"1","0.5"\n': "--training",
    '{"timestamp": 1700000000, "gpu_util": 50}\n': "as a CSV with a header",
    HOST: "--host",
    "timestamp, pid, process_name, used_gpu_memory [MiB]\n"
    + "".join(f"2026/03/14 09:00:{second:02d}.000, 42, python, 900 MiB\n" for second in range(30)): "gpu_uuid",
    "".join(f"Sat Mar 14 09:00:{s:02d} UTC 2026\n0, {50 + s % 9} %, {1000 + s} MiB\n" for s in range(40)): (
        "--columns column_1,column_2,column_3"
    ),
}
"""What is no log of GPUs, and what its message holds of what to do."""
UNREADABLE = {
    "what other tools write": b"region,sales\nnorth,3\n",
    "XML of a test runner": b'<?xml version="1.0"?>\n<testsuites>\n<testsuite name="a"/>\n</testsuites>\n',
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "no text": b"\xff\xfa\x81" * 30_000 + b"\n" + log(50).encode(),
    "a header too deep": (PROSE * 60_000 + log(50)).encode(),
    "a line of commas": bz2.compress(b"," * 5_000_000),
    "a line of columns": bz2.compress(b"time,cpu," + b"mem_b," * 10_000),
    "a line of slashes": bz2.compress(b"/," * 2_500_000),
    "an empty gzip": PACKED["gzip"](b""),
    "a cut gzip": PACKED["gzip"](b"x" * 100)[:10],
    "zip": b"PK\x03\x04" + b"\0" * 40,
    "tar": PACKED["gzip"](b"gpu.csv" + b"\0" * 250 + b"ustar  \0" + b"\0" * 500),
}


def refused(source: object, **options: object) -> SourceError:
    with pytest.raises(SourceError) as caught:
        gpureport.read(source, **options)  # type: ignore[arg-type] # a path or an address
    return caught.value


def names(source: Path) -> list[list[str]]:
    paths = ([Path(each.locator) for each in found.run.sources] for found in gpureport.read(source))
    return sorted([path.relative_to(source).as_posix() for path in own] for own in paths)


def test_what_is_no_log_or_cannot_be_read_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    for text, what in REFUSED.items():
        path.write_text(text)
        error = refused(path)
        assert (error.where, what in str(error)) == (str(path), True), (text, str(error))
    path = tmp_path / "gpu.csv"
    for name, content in UNREADABLE.items():
        path.write_bytes(content)
        said = str(refused(path))
        assert said.isprintable(), name
        assert len(said) < 600, name
    assert refused(tmp_path / "absent.csv").where == str(tmp_path / "absent.csv")


@pytest.mark.parametrize("first", ["node1\t1\tall\t%user\t50.25\n", "\n \n    GPU statistics are displayed\n"])
def test_a_file_is_shown_by_its_first_line_with_words(tmp_path: Path, first: str) -> None:
    (tmp_path / "log.txt").write_text(first)
    assert " ".join(first.split()) in str(refused(tmp_path / "log.txt"))


@pytest.mark.parametrize("address", ["sqlite:////srv/mlflow.db", "http://localhost:5000", "file:///srv/mlruns"])
def test_the_address_of_a_tracker(address: str) -> None:
    assert "mlflow:" in refused(address).hint


def test_a_file_one_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = write(tmp_path, locked=log())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # root may read every file, so the refusal is played
    monkeypatch.setattr(Path, "open", refuse)
    assert refused(path).where == str(path)


@pytest.mark.parametrize("repeats", [600, 40_000])
def test_a_log_below_the_output_of_a_job(tmp_path: Path, repeats: int) -> None:
    """A header is looked for up to 4 MiB down, and what it leaves open is told by the lines around it."""
    table = log(50).replace("utilization.gpu [%]", "utilization.gpu").replace("90 %", "0.97").replace("0.97", "0", 9)
    recording = read_text(tmp_path, PROSE * repeats + table)
    quality = recording.run.quality
    assert (quality.rows_kept, quality.headers, quality.rejected[0].rows) == (50, 1, 3 * repeats)
    assert "gpu_utilization_ratio" not in recording.series.column_names


@pytest.mark.parametrize("name", ["logs.tar", "logs.tar.gz", "logs.zip"])
def test_an_archive_is_none_of_its_logs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "logs.zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("gpu.csv", log(60))
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as packed_tar:
            entry = tarfile.TarInfo("gpu.csv")
            entry.size = len(log(60))
            packed_tar.addfile(entry, io.BytesIO(log(60).encode()))
    assert "unpack" in refused(path).hint
    write(tmp_path, other=log(20))
    assert names(tmp_path) == [["other.csv"]]


def test_a_host_log_and_one_of_gpus_confused(tmp_path: Path) -> None:
    gpu, host, other = write(tmp_path, gpu=log(), host=HOST, other="x\n")
    assert refused(gpu, host=gpu).where == str(gpu)
    assert refused(gpu, host=other).where == str(other)
    gpu.unlink()
    other.unlink()
    assert "gpureport record -- COMMAND" in str(refused(tmp_path))
    host.unlink()
    (tmp_path / "notes.txt").write_text("nothing")
    assert refused(tmp_path).where == str(tmp_path)


def test_a_host_log_joins_the_only_log_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "a", gpu=log(), host=HOST)
    write(tmp_path / "b", gpu=log())
    assert names(tmp_path) == [["a/gpu.csv", "a/host.csv"], ["b/gpu.csv"]]
    write(tmp_path / "a", other=log(60).replace("90 %", "40 %"))
    assert names(tmp_path / "a") == [["gpu.csv"], ["other.csv"]]


@pytest.mark.parametrize("header", ["timestamp,name,value", "timestamp,index,loss", "timestamp,index,name,serial"])
def test_a_table_of_something_else_beside_a_log(tmp_path: Path, header: str) -> None:
    write(tmp_path, gpu=log(), host=HOST, train=f"{header}\n2026/03/14 09:00:00.000,0,1\n")
    assert [own[:2] for own in names(tmp_path)] == [["gpu.csv", "host.csv"]]


def attach(root: Path) -> Path:
    """Put a log among the artifacts of the run of an experiment; return it."""
    return write(root / RUN.id / "artifacts/gpureport", **{"nvidia-smi": log()})[0]


def test_a_folder_with_a_store_of_a_tracker_names_it(tmp_path: Path) -> None:
    store = folder(tmp_path / "copy/mlruns", [RUN])
    attach(next(store.iterdir()))
    assert str(store) in refused(tmp_path / "copy").hint
    database(tmp_path / "mlflow.db", [RUN])
    assert str(tmp_path / "mlflow.db") in refused(tmp_path).hint
    (tmp_path / "neptune/.neptune/offline").mkdir(parents=True)
    assert str(tmp_path / "neptune/.neptune") in refused(tmp_path / "neptune").hint


def test_logs_beside_and_in_a_store_of_a_tracker(tmp_path: Path) -> None:
    kept = attach(tmp_path / "mlruns/1")
    assert "mlflow:STORE" in refused(tmp_path / "mlruns").hint
    assert refused(tmp_path / "mlruns/1").where == str(tmp_path / "mlruns/1")
    for named in (kept, kept.parent, kept.parents[1]):
        assert read(named).run.sources[0].locator == str(kept)
    attach(next(folder(tmp_path / "mlruns", [RUN]).iterdir()))
    write(tmp_path, gpu=log())
    write(tmp_path / "logs", gpu=log(30))
    assert names(tmp_path) == [["gpu.csv"], ["logs/gpu.csv"]]


def test_what_lies_beside_the_logs_of_samples_is_refused() -> None:
    samples = Path("sample_logs").resolve()
    other = ("expected.json", "truth.json", "run.json")
    texts = [path for path in samples.rglob("*") if path.name in other and path.parent.parent.name != "recorded"]
    assert len(texts) > 20
    for path in texts:
        refused(path)

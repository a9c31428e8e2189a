"""Which files are logs, which of them make one run, and what is refused with what to do instead."""

import bz2
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpureport
from gpureport.errors import SourceError
from gpureport.testing import Recording
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.readers.conftest import Hold
from tests.support.logs import PACKED, log, read, read_text, stamp, write
from tests.support.program import Program
from tests.support.tables import read_blocks, read_table

HERE = Path(__file__).parent
HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02}.000,50\n" for second in range(20))
RUN = Made(id=run_id(1), name="baseline", series=monitored([10_000, 20_000, 30_000]))
PROSE = "Epoch 3/100, step 1200: loss=0.43, gpu memory 1024 MiB\n  [rank0] 0.42 s\n2026-03-14 saved, /out/a\n"
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
    for what, text in read_blocks(HERE / "refused.txt"):
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


PHASES = Path("sample_logs/recorded/phases").resolve()
COMPANIONS = ("dmon", "dmon-gpm", "pmon", "table", "compute-apps", "gpustat", "q", "nvitop")
HEADER = "timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]"
DMON = "#Date Time gpu rxpci txpci\n#YYYYMMDD HH:MM:SS Idx MB/s MB/s\n"
VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
"""


def query(seconds: Iterable[float], gpu: int = 0, uuid: str = "GPU-a") -> str:
    rows = (
        f"{stamp(at)}, {gpu}, {uuid}, {90 if at // 10 % 2 else 10} %, {1000 + gpu} MiB, {200 + at % 7:.2f} W"
        for at in seconds
    )
    return "\n".join([HEADER, *rows, ""])


def dmon(seconds: Iterable[int], gpu: int = 0) -> str:
    """Return a log of copies over PCIe, which rise by one megabyte a second."""
    return DMON + "".join(f"20260314 {stamp(at)[11:19]} {gpu} {at} 5\n" for at in seconds)


def host(seconds: Iterable[int]) -> str:
    return "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in seconds)


def runs(source: Path, **options: object) -> str:
    """Return the runs of a folder, each as the names of its logs without their ends."""
    found = gpureport.read(source, **options)  # type: ignore[arg-type] # any option
    own = ([Path(each.locator) for each in one.run.sources] for one in found)
    made = (sorted(each.relative_to(source).as_posix().partition(".")[0] for each in paths) for paths in own)
    return "; ".join(sorted(map(" ".join, made)))


def copy(folder: Path, *names: str) -> Path:
    for path in PHASES.iterdir():
        if path.name.partition(".")[0] in names:
            shutil.copy(path, folder)
    return folder


def figures(recording: Recording, like: Recording) -> object:
    return recording.rows_of("gpu:0").select(like.series.column_names).to_pylist()


@pytest.mark.parametrize("companion", COMPANIONS)
def test_each_recorder_of_a_job_joins_its_query(tmp_path: Path, companion: str) -> None:
    recording = read(copy(tmp_path, "query", companion), tz="UTC")
    assert [device.id for device in recording.run.gpus] == ["gpu:0"]
    assert Path(recording.run.sources[0].locator).name == "query.csv.gz"
    assert (len(recording.run.sources), recording.run.quality.accounted) == (2, True)


def test_recorders_of_a_job_join_and_leave_the_main_log_as_it_is(tmp_path: Path) -> None:
    joined, alone = read(copy(tmp_path, "query", "dmon", "pmon", "host")), read(PHASES / "query.csv.gz")
    assert figures(joined, alone) == figures(alone, alone)
    for name in ("interval", "started", "ended", "name", "gpus"):
        assert getattr(joined.run, name) == getattr(alone.run, name)
    assert joined.run.quality.gaps == alone.run.quality.gaps
    assert joined.series.column("pcie_receive_bytes_per_second").null_count < len(joined.series) / 2 + 20
    recording = read(copy(tmp_path, "query", "host", *COMPANIONS), tz="UTC")
    assert [device.id for device in recording.run.devices] == ["gpu:0", "host"]
    assert recording.run.interval == pytest.approx(1.007)
    assert recording.run.quality.accounted


def node(seed: int, seconds: Iterable[int] = range(60), extra: str = "") -> str:
    """Return a log of two GPUs of a machine that no column names; `seed` tells machines apart."""
    lines = [f"timestamp, index, utilization.gpu [%], power.draw [W]{extra and f', {extra}'}"]
    for at in seconds:
        for gpu in (0, 1):
            util, watts = (at * (7 + seed) + 13 * gpu) % 101, 200 + (at * seed + gpu) % 97
            lines.append(f"{stamp(at)}, {gpu}, {util} %, {watts}.00 W{extra and ', 50'}")
    return "\n".join([*lines, ""])


def named(seed: int, model: str) -> str:
    return node(seed, extra="name").replace(", 50\n", f", {model}\n")


def vmstat(day: int) -> str:
    """Return a log of the machine that names its zone."""
    cells = " 5 0 0 21292 112652 3277128 0 0 29 75 77 55 43 4 53 0 0"
    return VMSTAT + "".join(f"{cells} 2026-03-{day} 09:00:{second:02d}\n" for second in range(60))


def other(header: str) -> dict[str, str]:
    return {"gpu": log(), "host": HOST, "train": f"{header}\n2026/03/14 09:00:00.000,0,1\n"}


A100, MINUTE = "NVIDIA A100-SXM4-40GB", query(range(60))
NEXT, SECOND, COARSE = query(range(60), uuid="GPU-b"), query(range(60), 1, "GPU-b"), query(range(0, 60, 5))
LONG, LATE = query(range(1000)), range(90, 1090)
JOBS = {"a": MINUTE, "b": query(range(100, 160)), "day": dmon(range(200)), "host": host(range(200))}
NODES = {"n1-gpu": MINUTE, "n2-gpu": NEXT, "n1-host": host(range(60)), "other": host(range(60))}
ZONES = {"a": MINUTE, "b": COARSE.replace(".000,", ".000Z,")}
HALVES = {"a": MINUTE, "b": query(range(1800, 1860))}
FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "jobs": ({"a": MINUTE, "b": query(range(60, 120))}, "a; b"),
    "nodes": ({"a": MINUTE, "b": NEXT}, "a b"),
    "GPUs": ({"gpu0": MINUTE, "gpu1": SECOND}, "gpu0 gpu1"),
    "recorders": ({"slow": COARSE, "fine": MINUTE}, "fine slow"),
    "goes on": ({"slow": query(range(0, 300, 5)), "fine": MINUTE}, "fine; slow"),
    "end": ({"a": MINUTE, "end": dmon(range(50, 110))}, "a; end"),
    "ranks": ({"rank-1": LONG, "rank-2": query(range(1000), 1, "GPU-b")}, "rank-1 rank-2"),
    "late": ({"a": LONG, "b": query(LATE, 1, "GPU-b")}, "a; b"),
    "late node": ({"a": LONG, "b": query(LATE, uuid="GPU-b")}, "a; b"),
    "day": (JOBS, "a day host; b day host"),
    "hosts of nodes": (NODES, "n1-gpu n1-host n2-gpu other"),
    "host log of a folder": ({"a/gpu": log(), "a/host": HOST, "b/gpu": log()}, "a/gpu a/host; b/gpu"),
    "host log of two": ({"gpu": log(), "host": HOST, "other": log(60).replace("90 %", "40 %")}, "gpu; other"),
    "another table": (other("timestamp,name,value"), "gpu host"),
    "training metrics": (other("timestamp,index,loss"), "gpu host train"),
    "training rates": (other("timestamp,index,samples_per_second"), "gpu host train"),
    "training steps": (other("timestamp,step,value"), "gpu host train"),
    "a table of GPUs": (other("timestamp,index,name,serial"), "gpu host"),
    "model": ({"a": named(1, A100), "b": named(2, A100)}, "a b"),
    "model without its brand": ({"a": named(1, A100), "b": named(2, A100[7:])}, "a b"),
    "another model": ({"a": named(1, A100), "b": named(2, "NVIDIA L4")}, "a; b"),
    "later": ({"a": node(1), "b": node(2, range(100, 160))}, "a; b"),
    "longer": ({"a": node(1), "b": node(2, range(130))}, "a; b"),
    "coarser": ({"a": node(1), "b": node(2, range(0, 60, 3))}, "a; b"),
    "other columns": ({"a": node(1), "b": node(2, extra="temperature.gpu")}, "a; b"),
    "seconds later": ({"a": node(1), "b": node(2, range(8, 68))}, "a; b"),
    "what adds to any node": ({"n1": MINUTE, "n2": NEXT, "copies": dmon(range(60))}, "copies; n1 n2"),
    "no zone": (ZONES, "a; b"),
    "zone named": (ZONES, "a b"),
    "machine, no zone": (HALVES | {"host": vmstat(14)}, "a; b"),
    "machine, zone named": (HALVES | {"host": vmstat(14)}, "a host; b"),
    "machine of another day, zone named": (HALVES | {"host": vmstat(15)}, "a; b"),
}
"""Logs of a folder, and the runs they make; with `zone named`, their zone is told to be UTC."""


@pytest.mark.parametrize("name", FOLDERS)
def test_logs_of_a_folder(tmp_path: Path, name: str) -> None:
    for path, text in FOLDERS[name][0].items():
        write((tmp_path / path).parent, ".log", **{Path(path).name: text})
    assert runs(tmp_path, **({"tz": "UTC"} if name.endswith("zone named") else {})) == FOLDERS[name][1]


def test_labels_and_copies_make_no_second_node(tmp_path: Path) -> None:
    write(tmp_path / "logs", a=node(1), b=node(2))
    (tmp_path / "logs" / "b.json").write_text('{"tags": {"job": "22"}}')
    assert runs(tmp_path / "logs") == "a; b"
    write(tmp_path / "copies", a=node(1), b=node(1, range(55)))
    assert [device.id for device in read(tmp_path / "copies").run.gpus] == ["gpu:0", "gpu:1"]


def test_a_log_a_node_in_a_folder_is_one_run_of_several_nodes(tmp_path: Path) -> None:
    write(tmp_path / "logs", **{f"node{seed}": node(seed) for seed in (2, 1, 3)})
    run = read(tmp_path / "logs").run
    assert [device.id for device in run.gpus] == [f"node{seed}/gpu:{gpu}" for seed in (1, 2, 3) for gpu in (0, 1)]
    assert (run.name, run.quality.rows_kept, run.quality.accounted) == ("logs", 360, True)
    assert any("several machines: node1, node2, node3." in note for note in run.quality.notes)
    assert run.id == read(tmp_path / "logs", as_one_run=True).run.id


def test_nodes_and_steps_that_are_named_stay_apart(tmp_path: Path, gpureport: Program) -> None:
    write(tmp_path, n1=node(1), n2=node(2))
    for more, count in (((), 2), (("--as-one-run",), 1)):
        assert len(json.loads(gpureport("analyze", "n1.csv", "n2.csv", *more, "--format", "json").out)["runs"]) == count
    assert len(json.loads(gpureport("analyze", ".", "n2.csv", "--format", "json").out)["runs"]) == 2
    write(tmp_path, ".log", gpu0=query(range(60)), gpu1=query(range(60), 1, "GPU-b"))
    compared = json.loads(gpureport("compare", "gpu0.log", "gpu1.log", "--format", "json").out)
    assert [step["label"] for step in compared["steps"]] == ["gpu0", "gpu1"]


def test_a_companion_named_as_host_log(tmp_path: Path) -> None:
    logs = {"gpu": query(range(60)), "copies": dmon(range(60)), "late": dmon(range(600, 700))}
    gpu, copies, late = write(tmp_path, ".log", **logs)
    assert read(gpu, host=copies).run.id == read(copies, host=gpu).run.id != read(gpu).run.id
    with pytest.raises(SourceError) as refused:
        gpureport.read(gpu, host=late)
    assert refused.value.where == str(late)
    gpu.write_text("index, utilization.gpu [%]\n" + "0, 90 %\n" * 9)
    with pytest.raises(SourceError) as refused:
        gpureport.read(gpu, host=copies, interval=1.0)
    assert refused.value.code == "joins_no_run"


def test_finer_and_coarser_companions(tmp_path: Path, hold: Hold) -> None:
    write(tmp_path, ".log", slow=query(range(0, 60, 5)), fine=query(range(60)))
    recording = read(tmp_path)
    assert (Path(recording.run.sources[0].locator).stem, recording.run.interval) == ("fine", 1.0)
    gpu, copies = write(tmp_path, ".log", gpu=query(range(0, 60, 10)), copies=dmon(range(60)))
    hold("finer copies", partial(read, gpu, host=copies))
    gpu, copies = write(tmp_path, ".log", gpu=query(range(60)), copies=dmon(range(0, 30, 10)))
    hold("coarser copies", partial(read, gpu, host=copies))
    for node in ("n1", "n2"):
        write(tmp_path / node, ".log", gpu=query(range(60), uuid=f"GPU-{node}"), dmon=dmon(range(60)))
    for path in tmp_path.glob("*.log"):
        path.unlink()
    assert [run.run.name for run in gpureport.read(tmp_path)] == ["n1", "n2"]
    hold("recordings of nodes", partial(read, tmp_path, as_one_run=True))


@settings(max_examples=6, deadline=None)
@given(names=st.permutations("vwxyz"))
def test_the_names_of_logs_never_matter(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    first, second, other = range(60), range(100, 160), query(range(60), 3, "GPU-3")
    logs = (query(first), dmon(first), query(second), dmon(second), other)
    folder = tmp_path_factory.mktemp("logs")
    write(folder, ".log", **dict(zip(names, logs, strict=True)))
    groups = (names[0], names[1], names[4]), names[2:4]
    assert runs(folder) == "; ".join(sorted(" ".join(sorted(each)) for each in groups))


def test_a_run_is_called_after_its_log_or_its_folder(tmp_path: Path, gpureport: Program) -> None:
    for path, name in read_table(HERE / "names.tsv"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(log())
        assert read(tmp_path / path).run.name == name, path
    (tmp_path / "gpu.csv").write_text(log())
    (run,) = json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)["runs"]
    assert run["run"]["name"] == tmp_path.name


@pytest.mark.parametrize("row", read_table(HERE / "paths.tsv"))
def test_as_much_of_a_path_as_differs(tmp_path: Path, gpureport: Program, row: list[str]) -> None:
    paths, names = row[:2], row[2:]
    for place, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(query(range(100 * place, 100 * place + 60)))
    found = json.loads(gpureport("analyze", *paths, "--format", "json").out)["runs"]
    assert [each["run"]["name"] for each in found] == names

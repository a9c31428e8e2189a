"""Which files make one run: logs of one machine and the same minutes, whatever they are called."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpureport
from gpureport.errors import SourceError
from gpureport.importers import find_source_runs
from gpureport.importers.merging import log_groups, log_survey
from gpureport.record_folder import RecordedRun, format_run_file
from gpureport.testing import Recording
from tests.importers.written_logs import stamp

PHASES = Path("sample_logs/recorded/phases").resolve()
COMPANIONS = ("dmon", "dmon-gpm", "pmon", "table", "compute-apps", "gpustat", "q", "nvitop")
HEADER = "timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]"
DMON = "#Date Time gpu rxpci txpci\n#YYYYMMDD HH:MM:SS Idx MB/s MB/s\n"


def query(seconds: Iterable[float], gpu: int = 0, uuid: str = "GPU-a") -> str:
    """Return a log of one GPU that is busy every other ten seconds."""
    rows = (
        f"{stamp(at)}, {gpu}, {uuid}, {90 if at // 10 % 2 else 10} %, {1000 + gpu} MiB, {200 + at % 7:.2f} W"
        for at in seconds
    )
    return "\n".join([HEADER, *rows, ""])


def dmon(seconds: Iterable[int], gpu: int = 0) -> str:
    """Return a log of copies over PCIe, which rise by one megabyte a second."""
    return DMON + "".join(f"20260314 {stamp(at)[11:19]} {gpu} {at} 5\n" for at in seconds)


def write(folder: Path, **logs: str) -> list[Path]:
    """Write logs and return where."""
    paths = [folder / f"{name}.log" for name in logs]
    for path, content in zip(paths, logs.values(), strict=True):
        path.write_text(content)
    return paths


def copy(folder: Path, *names: str) -> Path:
    """Copy logs of one recorded job to a folder."""
    for path in PHASES.iterdir():
        if path.name.partition(".")[0] in names:
            shutil.copy(path, folder)
    return folder


def names(paths: Iterable[Path], **options: bool) -> list[list[str]]:
    """Return the files of each run that sources hold, the main log first."""
    runs = find_source_runs(list(paths), **options).runs  # type: ignore[arg-type]  # flags only
    return [[each.path.stem for each in inputs] for own in runs for inputs in own]


def figures(recording: Recording, like: Recording) -> object:
    """Return the metrics of the GPU that another recording holds."""
    return recording.rows_of("gpu:0").select(like.series.column_names).to_pylist()


@pytest.mark.parametrize("companion", COMPANIONS)
def test_each_recorder_of_a_job_joins_its_query(tmp_path: Path, companion: str) -> None:
    """One GPU stays one GPU, and every line of both logs is accounted for."""
    (recording,) = gpureport.read(copy(tmp_path, "query", companion), tz="UTC")
    assert [device.id for device in recording.run.gpus] == ["gpu:0"]
    assert next(Path(source.locator).name for source in recording.run.sources) == "query.csv.gz"
    assert len(recording.run.sources) == 2
    assert recording.run.quality.accounted


def test_what_the_main_log_says_stays_as_it_is_alone(tmp_path: Path) -> None:
    """Companions add metrics to its rows; its own figures, interval and gaps are those of the log alone."""
    (joined,) = gpureport.read(copy(tmp_path, "query", "dmon", "pmon", "host"))
    (alone,) = gpureport.read(PHASES / "query.csv.gz")
    assert figures(joined, alone) == figures(alone, alone)
    for name in ("interval", "started", "ended", "name", "gpus"):
        assert getattr(joined.run, name) == getattr(alone.run, name)
    assert joined.run.quality.gaps == alone.run.quality.gaps
    assert joined.series.column("pcie_receive_bytes_per_second").null_count < len(joined.series) / 2 + 20
    assert any("values not used, because" in note for note in joined.run.quality.notes)


def test_ten_recorders_of_a_job_are_one_run(tmp_path: Path) -> None:
    """A folder with all of them holds one run of one GPU; of two host logs with the same metric one is left out."""
    copy(tmp_path, "query", "query-0p1s", "host", *COMPANIONS)
    (recording,) = gpureport.read(tmp_path, tz="UTC")
    assert [device.id for device in recording.run.devices] == ["gpu:0", "host"]
    assert recording.run.interval == pytest.approx(0.102)
    assert recording.run.quality.accounted


def test_two_jobs_and_two_nodes_stay_two_runs(tmp_path: Path) -> None:
    """Logs one after the other are two jobs; the same number with another uuid is another machine."""
    jobs = write(tmp_path, a=query(range(60)), b=query(range(60, 120)))
    assert names(jobs) == [["a"], ["b"]]
    nodes = write(tmp_path, a=query(range(60)), b=query(range(60), uuid="GPU-b"))
    assert names(nodes) == names([tmp_path]) == [["a"], ["b"]]


def test_a_log_a_gpu_in_one_folder_is_one_run(tmp_path: Path) -> None:
    """Logs of several GPUs and the same minutes are one run, unless they are steps to compare."""
    paths = write(tmp_path, gpu0=query(range(60)), gpu1=query(range(60), 1, "GPU-b"))
    (recording,) = gpureport.read(tmp_path)
    assert [device.uuid for device in recording.run.devices] == ["GPU-a", "GPU-b"]
    assert recording.run.quality.accounted
    assert names(paths, steps=True) == [["gpu0"], ["gpu1"]]


@pytest.mark.parametrize(
    ("one", "other", "seconds", "runs"),
    [
        ("rank-1", "rank-2", range(1000), 1),
        ("job00022", "job00030", range(1000), 2),
        ("a", "b", range(1000), 1),
        ("a", "b", range(90, 1090), 2),
    ],
)
def test_jobs_of_the_same_minutes_stay_apart(tmp_path: Path, one: str, other: str, seconds: range, runs: int) -> None:
    """Logs whose names number jobs and no GPUs, and logs that do not begin and end together, are different runs."""
    paths = write(tmp_path, **{one: query(range(1000)), other: query(seconds, 1, "GPU-b")})
    assert len(names(paths)) == runs


def test_two_recorders_of_one_gpu_are_one_run(tmp_path: Path) -> None:
    """The finer log is the main one; named as the steps of a comparison, both stay."""
    paths = write(tmp_path, slow=query(range(0, 60, 5)), fine=query(range(60)))
    assert names(paths) == names([tmp_path]) == [["fine", "slow"]]
    assert sorted(names(paths, steps=True)) == [["fine"], ["slow"]]


def test_a_log_of_the_whole_day_joins_each_job(tmp_path: Path) -> None:
    """Copies and host of a day belong to each job of that day, where they share its time."""
    host = "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in range(200))
    write(tmp_path, a=query(range(60)), b=query(range(100, 160)), day=dmon(range(200)), host=host)
    assert names([tmp_path]) == [["a", "day", "host"], ["b", "day", "host"]]


def test_host_logs_of_two_nodes_go_by_their_names(tmp_path: Path) -> None:
    """Nodes share their minutes, so that names tell; a host log that no name gives a node is left out with why."""
    host = "timestamp,cpu_percent\n" + "".join(f"{stamp(at).replace('/', '-')},50\n" for at in range(60))
    logs = {"n1-gpu": query(range(60)), "n2-gpu": query(range(60), uuid="GPU-b"), "n1-host": host, "other": host}
    write(tmp_path, **logs)
    assert names([tmp_path]) == [["n1-gpu", "n1-host"], ["n2-gpu"]]
    assert find_source_runs([tmp_path]).unused == {tmp_path / "other.log": "may belong to any of several runs"}


def test_a_companion_named_as_host_log(tmp_path: Path) -> None:
    """It joins the run; one of another time is refused with both times."""
    gpu, copies, late = write(tmp_path, gpu=query(range(60)), copies=dmon(range(60)), late=dmon(range(600, 700)))
    (joined,) = gpureport.read(gpu, host=[copies])
    assert joined.run.id == gpureport.read(copies, host=[gpu])[0].run.id != gpureport.read(gpu)[0].run.id
    said = r"late\.log: it covers 2026-03-14 09:10:00 to 2026-03-14 09:11:39, and .*gpu\.log covers 2026-03-14 09:00:00"
    with pytest.raises(SourceError, match=said):
        gpureport.read(gpu, host=[late])


def test_a_finer_companion_gives_means_and_a_coarser_one_its_nearest_reading(tmp_path: Path) -> None:
    """Rates are averaged over the main log's interval; a reading holds for one interval of its own at most."""
    gpu, copies = write(tmp_path, gpu=query(range(0, 60, 10)), copies=dmon(range(60)))
    (joined,) = gpureport.read(gpu, host=[copies])
    rates = joined.series.column("pcie_receive_bytes_per_second").to_numpy()
    assert rates[1:-1] / rates[1] == pytest.approx([1, 2, 3, 4], rel=0.1)
    gpu, copies = write(tmp_path, gpu=query(range(60)), copies=dmon(range(0, 30, 10)))
    (joined,) = gpureport.read(gpu, host=[copies])
    rates = joined.series.column("pcie_receive_bytes_per_second").to_numpy()
    assert len(set(rates[~np.isnan(rates)])) == 3
    assert np.flatnonzero(np.isnan(rates)).tolist() == list(range(31, 60))


def test_recordings_of_nodes_are_one_run_on_demand(tmp_path: Path) -> None:
    """Each node's copies join the GPUs of that node."""
    for node in ("n1", "n2"):
        (tmp_path / node).mkdir()
        write(tmp_path / node, gpu=query(range(60), uuid=f"GPU-{node}"), dmon=dmon(range(60)))
    assert [run.run.name for run in gpureport.read(tmp_path)] == ["n1", "n2"]
    (joined,) = gpureport.read(tmp_path, as_one_run=True)
    assert [device.id for device in joined.run.devices] == ["n1/gpu:0", "n2/gpu:0"]
    assert joined.series.column("pcie_receive_bytes_per_second").null_count == 0
    assert joined.run.quality.accounted


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(5)))
def test_the_order_of_sources_never_matters(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    """The same logs make the same runs."""
    logs = {
        "a": query(range(60)),
        "a-copies": dmon(range(60)),
        "b": query(range(100, 160)),
        "b-copies": dmon(range(100, 160)),
        "c": query(range(60), 3, "GPU-c"),
    }
    paths = write(tmp_path_factory.mktemp("logs"), **logs)
    found = sorted(names([paths[place] for place in order]))
    assert found == sorted(names(paths))
    assert sorted(map(sorted, found)) == [["a", "a-copies", "c"], ["b", "b-copies"]]


def test_logs_of_one_recorder_are_one_run_whatever_they_read(tmp_path: Path) -> None:
    """Readings of two moments may differ for a whole job; the run file says that one recorder wrote both."""
    (tmp_path / "gpu.csv").write_text(query(range(60)))
    header = "#Date Time gpu pwr sm\n#YYYYMMDD HH:MM:SS Idx W %\n"
    rows = (f"20260314 {stamp(at)[11:19]} 0 60 {(7 * at) % 100}\n" for at in range(60))
    (tmp_path / "dmon.log").write_text(header + "".join(rows))
    assert names([tmp_path]) == [["dmon"], ["gpu"]]
    (tmp_path / "run.json").write_text(format_run_file(RecordedRun(started=0)))
    assert names([tmp_path]) == [["gpu", "dmon"]]


def test_each_of_many_logs_is_read_once_to_find_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs one after the other on one card, and nodes at the same time on others, are compared with none but theirs."""
    for job in range(6):
        span = range(60 * job, 60 * job + 60)
        for node in "ab":
            write(tmp_path, **{f"{node}{job}": query(span, uuid=f"GPU-{node}"), f"{node}{job}-copies": dmon(span)})
        write(tmp_path, **{f"late-{job}": query(span, 1, "GPU-c")})
    surveys, matches = Mock(wraps=log_survey._survey), Mock(wraps=log_groups.match_logs)  # noqa: SLF001 - what is counted
    monkeypatch.setattr(log_survey, "_survey", surveys)
    monkeypatch.setattr(log_groups, "match_logs", matches)
    found, files = names([tmp_path]), list(tmp_path.iterdir())
    assert sorted(stem for run in found for stem in run) == sorted(path.stem for path in files)
    assert sorted(call.args[0].path for call in surveys.call_args_list) == sorted(files)
    assert matches.call_count <= 3 * len(files)

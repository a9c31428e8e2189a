"""Documents of `gpustat --json`, written by gpustat 1.1.1 and made up, become the series of the GPUs."""

import json
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import absent, column, kept, rejected

CAPTURES = Path(__file__).parent / "captures"
_EPOCH = 1_795_275_165
"""Second at which the stand-in of NVML began: GPU 0 computes 7 s of every 12."""


def read(path: Path) -> Recording:
    """Return a log as it is read."""
    return Reading(find_runs(path)[0], ReadOptions(), Labels()).recording()


def made(folder: Path, text: str) -> Recording:
    """Return a made-up log as it is read."""
    path = folder / "gpustat.json"
    path.write_text(text)
    return read(path)


def test_what_gpustat_wrote_is_what_the_gpu_did() -> None:
    """Utilisation and power follow the schedule of the stand-in; a reading up to 0.3 s before its stamp may differ."""
    found = read(CAPTURES / "two-gpus.json")
    assert kept(found) == 32
    rows = found.rows_of("gpu:0").to_pylist()
    for row in rows:
        phase = (row["timestamp"].timestamp() - _EPOCH) % 12
        if 0.3 < phase < 7 or phase > 7.3:
            assert round(row["gpu_utilization_ratio"], 3) == (0.97 if phase < 7 else 0)
            assert row["gpu_power_watts"] == (251 if phase < 7 else 71)
    assert set(column(found, "gpu_utilization_ratio", "gpu:1")) == {0.35}
    assert set(column(found, "gpu_memory_used_bytes")) == {12 * 2**30}
    assert absent(found) == [("fan.speed", "null", 16)]


def test_devices_are_told_by_uuid() -> None:
    """A document says which GPU is meant, how much memory it has and which driver."""
    gpu = read(CAPTURES / "two-gpus.json").run.gpus[0]
    assert (gpu.id, gpu.uuid) == ("gpu:0", "GPU-00000000-0000-4000-8000-000000000000")
    assert (gpu.memory_total_bytes, gpu.driver, gpu.power_limit_watts) == (16 * 2**30, "580.00.sim", 300)


def _hosts(*hosts: str, uuids: bool = False, index: int = 0) -> str:
    """Return a document a second and host, of one GPU each."""
    documents = [
        {
            "hostname": host,
            "query_time": f"2026-03-14T09:00:{second:02}.000000",
            "gpus": [
                {"index": index if place else 0, "name": "NVIDIA L4", "utilization.gpu": 10 * place}
                | ({"uuid": f"GPU-0000000{place}-0000-4000-8000-000000000000"} if uuids else {})
            ],
        }
        for second in range(4)
        for place, host in enumerate(hosts)
    ]
    return "".join(json.dumps(each) + "\n" for each in documents)


def test_gpus_of_several_machines_are_not_one(tmp_path: Path) -> None:
    """GPU 0 of two machines is two GPUs: told by uuid, else the log is refused."""
    with pytest.raises(SourceError, match=r"gpustat.json: GPUs of several machines \(node1, node2\)"):
        made(tmp_path, _hosts("node1", "node2"))
    assert len(made(tmp_path, _hosts("node1", "node2", uuids=True)).run.gpus) == 2
    assert len(made(tmp_path, _hosts("node1", "node2", index=1)).run.gpus) == 2
    assert kept(made(tmp_path, _hosts("node1"))) == 4


def test_a_lost_gpu_has_rows_without_values() -> None:
    """A GPU that answers no more has null, never 0; what it still says is kept."""
    found = read(CAPTURES / "gpu-lost.json")
    assert column(found, "gpu_utilization_ratio", "gpu:1") == [0.35, 0.35, None, None]
    assert column(found, "gpu_temperature_celsius", "gpu:1") == [63, 63, 63, 63]


def test_a_gpu_that_cannot_be_asked_keeps_its_name(tmp_path: Path) -> None:
    """Gpustat writes the error in place of the name; the row has no values and the error is counted."""
    lost = other_tools.gpustat_document(1, indent=None).replace('"name": "NVIDIA L4"', '"name": "((GPU is lost))"')
    lost = lost.replace('"utilization.gpu": 1', '"utilization.x": 1')
    found = made(tmp_path, other_tools.gpustat_document(0, indent=None) + lost)
    assert {gpu.model for gpu in found.run.gpus} == {"NVIDIA L4"}
    assert ("utilization.gpu", "GPU is lost", 2) in absent(found)


def test_lines_of_a_document_are_counted_once(tmp_path: Path) -> None:
    """A document of many lines is its rows, and lines that say more of them; one of a line counts once a row."""
    text = other_tools.gpustat_log(3)
    quality = made(tmp_path, text).run.quality
    assert (quality.lines, quality.rows_kept) == (text.count("\n"), 6)
    quality = made(tmp_path, other_tools.gpustat_log(3, indent=None)).run.quality
    assert (quality.lines, quality.rows_kept, quality.continued) == (6, 6, 0)


def test_a_document_cut_inside_goes_alone(tmp_path: Path) -> None:
    """A killed gpustat loses its document; the next one begins at the start of a line."""
    half = "\n".join(other_tools.gpustat_document(1).splitlines()[:9]) + "\n"
    found = made(tmp_path, other_tools.gpustat_document(0) + half + other_tools.gpustat_document(2))
    assert kept(found) == 4
    assert [entry[:2] for entry in rejected(found)] == [("cut document", 9)]


def test_lines_between_documents_are_rejected(tmp_path: Path) -> None:
    """What a shell writes between documents is kept aside, an array around them is none of it."""
    document = other_tools.gpustat_document(0, indent=None)
    found = made(tmp_path, document + "Error on calling nvmlInit\n" + other_tools.gpustat_document(1, indent=None))
    assert rejected(found) == [("not JSON of this tool", 1, 2)]
    array = f"[\n{document.strip()},\n{other_tools.gpustat_document(1, indent=None)}]\n"
    assert kept(made(tmp_path, array)) == 4


def test_documents_without_gpus_are_noise(tmp_path: Path) -> None:
    """A machine whose driver shows no GPU says nothing of one."""
    found = made(tmp_path, other_tools.gpustat_document(0, 0) + other_tools.gpustat_document(1))
    assert (found.run.quality.noise, kept(found)) == (6, 2)


def test_other_json_under_gpustats_head_is_refused(tmp_path: Path) -> None:
    """A log in which nothing is a document of gpustat says so."""
    with pytest.raises(SourceError, match=r"none of its 1 lines holds a value of a GPU \(1 not JSON of this tool\)"):
        made(tmp_path, '{"query_time": 1, "gpus": [1, 2]}\n')


def test_processes_and_fields_of_its_own(tmp_path: Path) -> None:
    """Processes are not kept, and it is said; fields that are not known are kept as text."""
    found = made(tmp_path, other_tools.gpustat_document(0).replace('"fan.speed": null', '"fan.rpm": 900'))
    assert "What gpustat says of processes is not kept." in found.run.quality.notes
    assert found.rows_of("gpu:0").column("extra_fan_rpm").to_pylist() == ["900"]

"""Answers of Prometheus about dcgm-exporter become the series of the GPUs."""

import json
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.logs.dcgm import prometheus
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import absent, column, kept


def made(folder: Path, text: str) -> Recording:
    """Return an answer as it is read."""
    path = folder / "answer.json"
    path.write_text(text)
    return Reading(find_runs(path)[0], ReadOptions(), Labels()).recording()


def test_several_answers_are_one_recording(tmp_path: Path) -> None:
    """Answers one after the other, or in a list, fill the columns of one GPU, in UTC."""
    answers = [
        other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL=["61", "97"]),
        other_tools.prometheus_answer(DCGM_FI_DEV_FB_USED=["1024", "2048"], DCGM_FI_PROF_SM_ACTIVE=["0.5", "NaN"]),
    ]
    for text in ("".join(answers), f"[{','.join(answers)}]", json.dumps(list(map(json.loads, answers)), indent=2)):
        found = made(tmp_path, text)
        assert column(found, "gpu_utilization_ratio") == [0.61, 0.97]
        assert column(found, "gpu_memory_used_bytes") == [2**30, 2**31]
        assert column(found, "gpu_sm_active_ratio") == [0.5, None]
        assert (kept(found), found.run.timezone, found.run.interval) == (2, "UTC", 15)
        assert absent(found) == [("DCGM_FI_PROF_SM_ACTIVE", "NaN", 1)]
    (gpu,) = found.run.gpus
    assert (gpu.uuid, gpu.model, gpu.power_window) == ("GPU-0", "NVIDIA H100 80GB HBM3", "1 s")


def test_names_before_and_since_the_change_of_units(tmp_path: Path) -> None:
    """Names of dcgm-exporter 4.9.0 count in base units, those before in MHz, MiB and per cent."""
    old = {"DCGM_FI_DEV_SM_CLOCK": ["1980"], "DCGM_FI_DEV_FB_USED": ["1024"], "DCGM_FI_DEV_MEM_COPY_UTIL": ["40"]}
    new = {
        "DCGM_FI_DEV_SM_CLOCK_HERTZ": ["1980000000"],
        "DCGM_FI_DEV_FB_USED_BYTES": ["1073741824"],
        "DCGM_FI_DEV_MEMORY_UTIL_RATIO": ["0.4"],
    }
    before, since = (made(tmp_path, other_tools.prometheus_answer(**names)) for names in (old, new))
    assert before.series.equals(since.series)


def test_units_under_old_names_are_told_by_values(tmp_path: Path) -> None:
    """A relabelling that keeps the old names is noticed, and said."""
    found = made(tmp_path, other_tools.prometheus_answer(DCGM_FI_DEV_FB_USED=["0", "85520809984"]))
    assert column(found, "gpu_memory_used_bytes") == [0, 85520809984]
    assert "DCGM_FI_DEV_FB_USED was read in B, as its values say." in found.run.quality.notes


def test_a_unit_that_nothing_tells_is_not_guessed(tmp_path: Path) -> None:
    """The one name with two meanings, with values of both, is kept as text and noted."""
    text = other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL_RATIO=["0", "1"], DCGM_FI_DEV_GPU_TEMP=["50", "51"])
    found = made(tmp_path, text)
    assert "gpu_utilization_ratio" not in found.series.column_names
    assert found.rows_of("gpu:0").column("extra_DCGM_FI_DEV_GPU_UTIL_RATIO").to_pylist() == ["0", "1"]
    assert any("nobody can say" in note for note in found.run.quality.notes)
    text = other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL_RATIO=["0", "61"])
    assert column(made(tmp_path, text), "gpu_utilization_ratio") == [0, 0.61]


def test_xid_and_energy(tmp_path: Path) -> None:
    """The last Xid and the energy counter have columns of their own."""
    text = other_tools.prometheus_answer(
        DCGM_FI_DEV_XID_ERRORS=["0", "79"], DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION=["5000000", "5100000"]
    )
    found = made(tmp_path, text)
    assert column(found, "gpu_xid_code") == [0, 79]
    assert column(found, "gpu_energy_joules_total") == [5000, 5100]


def _relabelled(text: str, **labels: str) -> str:
    content = json.loads(text)
    for series in content["data"]["result"]:
        series["metric"] |= labels
    return json.dumps(content) + "\n"


def test_series_of_instances_and_other_metrics_are_left_out(tmp_path: Path) -> None:
    """MIG instances, metrics of others, and series without a name are not read, and it is said."""
    good = other_tools.prometheus_answer()
    bad = [_relabelled(good, GPU_I_ID="1"), _relabelled(good, __name__="up"), _relabelled(good, __name__="")]
    notes = made(tmp_path, "".join([good, *bad])).run.quality.notes
    assert len(notes) == 3
    with pytest.raises(SourceError, match="no series names a metric of DCGM and a GPU"):
        made(tmp_path, "".join(bad))


def test_pods_that_follow_each_other_share_a_gpu(tmp_path: Path) -> None:
    """A series ends with its pod and another one begins: both are the GPU's; where they differ the first is kept."""
    first, second = (
        _relabelled(other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL=cells), pod=pod)
        for cells, pod in ((["1", "2"], "a"), (["1", "9", "3"], "b"))
    )
    found = made(tmp_path, first + second)
    assert column(found, "gpu_utilization_ratio") == [0.01, 0.02, 0.03]
    assert any("several values" in note for note in found.run.quality.notes)


def test_labels_of_the_whole_run_are_tags(tmp_path: Path) -> None:
    """Those of the job, not of the exporter; what changes is noted, and all machines are named."""
    one = other_tools.prometheus_answer()
    job = {"pod": "train-0", "namespace": "vision", "container": "main", "hpc_job": "4411", "job": "gpu-metrics"}
    whole = {"node": "node1", "pod": "train-0", "namespace": "vision", "container": "main", "job": "4411"}
    run = made(tmp_path, _relabelled(one, **job)).run
    assert (dict(run.tags), run.quality.notes) == (whole, ())
    exporter = {"pod": "nvidia-dcgm-exporter-x7", "namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}
    assert dict(made(tmp_path, _relabelled(one, **exporter)).run.tags) == {"node": "node1"}
    scraped = {"pod": "metrics-x7", "namespace": "ops", "exported_pod": "train-0", "exported_namespace": "vision"}
    tags = dict(made(tmp_path, _relabelled(one, **scraped)).run.tags)
    assert (tags["pod"], tags["namespace"]) == ("train-0", "vision")
    other = _relabelled(one, Hostname="node2", UUID="GPU-9", pod="train-1", namespace="vision")
    run = made(tmp_path, _relabelled(one, **job) + other).run
    assert dict(run.tags) == {"node": "node1, node2", "namespace": "vision"}
    assert "The samples are of 2 pods, so the run has no tag pod." in run.quality.notes
    assert "Only 50% of the samples name their job, so the run has no tag job." in run.quality.notes


def test_gpus_of_several_machines(tmp_path: Path) -> None:
    """A uuid tells GPUs of two machines apart; without one they are refused."""
    one = other_tools.prometheus_answer()
    found = made(tmp_path, one + _relabelled(one, Hostname="node2", UUID="GPU-9"))
    assert [(gpu.id, gpu.uuid) for gpu in found.run.gpus] == [("gpu:0", "GPU-0"), ("gpu:1", "GPU-9")]
    with pytest.raises(SourceError, match=r"GPUs of several machines \(node1, node2\) without UUID"):
        made(tmp_path, one + _relabelled(one, Hostname="node2", UUID=""))
    alone = (_relabelled(one, Hostname="", UUID="", instance=f"10.0.0.{node}:9400") for node in (1, 2))
    with pytest.raises(SourceError, match=r"GPUs of several machines \(10\.0\.0\.1:9400, 10\.0\.0\.2:9400\)"):
        made(tmp_path, "".join(alone))


def test_an_answer_is_one_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus answers in one line, which is read whole up to a size that is stated."""
    text = other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL=["5"] * 60_000)
    assert len(text) > 2**20
    assert kept(made(tmp_path, text)) == 60_000
    monkeypatch.setattr(prometheus, "MOST", 2**20)
    with pytest.raises(SourceError, match=r"longer than 1 Mi characters, .*; query a shorter range"):
        made(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"status": "error", "error": "DCGM_FI_ parse", "metric": 1}', "an error: DCGM_FI_ parse"),
        (other_tools.prometheus_answer()[:-20], "not JSON, or cut"),
        ('{"data": {"result": []}, "x": {"metric": "DCGM_FI_"}}', "it holds no series"),
        (
            '{"data": {"result": [{"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL"}, "value": [1, "5"]}]}}',
            "an instant query",
        ),
        ('# HELP DCGM_FI_DEV_SM_CLOCK SM clock.\nDCGM_FI_DEV_SM_CLOCK{gpu="0"} 139\n', "at one moment"),
        ('DCGM_FI_DEV_SM_CLOCK{gpu="0"} 139\n', "without a time; let Prometheus scrape it"),
        ("[" * 20_000 + '{"metric": "DCGM_FI_"}' + "]" * 20_000, "not JSON, or cut"),
        ("[" * 200 + '{"metric": "DCGM_FI_"}' + "]" * 200, "it holds no series"),
    ],
)
def test_answers_without_a_range_are_refused(tmp_path: Path, text: str, what: str) -> None:
    """What is no range of time is refused in one line that says what to query."""
    with pytest.raises(SourceError, match=what):
        made(tmp_path, text)

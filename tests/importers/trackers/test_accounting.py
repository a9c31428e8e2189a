"""Tables with one row per run: they give GPU hours, mean use and energy, and nothing is judged."""

import gzip
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import analyze
from tests.cli.program import Program

SAMPLES = Path(__file__).parents[2] / "readers" / "pairs" / "accounting"


def test_use_and_energy_come_back_and_nothing_is_judged() -> None:
    train = analyze(gpureport.read(f"{SAMPLES / 'sacct.txt'}#18194943")[0])
    assert (train.findings, {each.code for each in train.not_judged}) == ((), {"single_mean"})
    used = [each.metric("gpu_utilization_ratio") for each in train.statistics]
    assert [each.mean for each in used if each is not None] == pytest.approx([0.99] * 4)
    resnet = analyze(gpureport.read(f"{SAMPLES / 'emissions.csv'}#resnet*")[0])
    joules = sum(each.energy_joules or 0.0 for each in resnet.statistics)
    assert joules / 3.6e6 == pytest.approx(2.303, abs=0.001)


def test_a_fleet_of_jobs(gpureport: Program) -> None:
    done = gpureport("fleet", str(SAMPLES / "sacct.txt"))
    assert "59% of 205 GPU-hours lost" in done.out
    assert "1 without a record of the use of all its GPUs: old-18201181)\n" in done.err


def test_energy_alone_and_one_mean_are_said_in_words_that_agree(gpureport: Program, tmp_path: Path) -> None:
    table = (
        "timestamp,project_name,run_id,duration,gpu_energy,gpu_count,gpu_utilization_percent\n2026-03-09T04:04:43,p,"
    )
    for run, use in (("a", ""), ("b", "50")):
        (tmp_path / f"{run}.csv").write_text(f"{table}{run},3600,0.5,2,{use}\n")
    energy, mean = gpureport("fleet", "a.csv").out, gpureport("analyze", "b.csv").out
    assert ("GPU-minutes, which took 500 Wh" in energy, "recorded lost" in energy) == (True, False)
    assert ("computed 50% of the time in the mean" in mean, "too short" in mean) == (True, False)


def test_a_table_is_no_log(gpureport: Program) -> None:
    refused = gpureport("analyze", str(SAMPLES))
    assert (refused.code, refused.out, f"give {SAMPLES / 'emissions.csv'}" in refused.err) == (3, "", True)


def test_packed_in_utf_16_and_through_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (SAMPLES / "sacct.txt").read_bytes()
    (tmp_path / "jobs.gz").write_bytes(gzip.compress(text))
    (tmp_path / "jobs.txt").write_bytes(text.decode().encode("utf-16"))
    for name in ("jobs.gz", "jobs.txt"):
        assert len(gpureport.read(tmp_path / name)) == len(gpureport.read(SAMPLES / "sacct.txt"))
    with (SAMPLES / "sacct.txt").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert [run.run.sources[0].locator for run in gpureport.read("-")][:1] == ["accounting:-#18194943"]


def test_a_job_that_is_not_read_says_why(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text(
        "JobID|State|Start|Elapsed|NTasks|AllocTRES|TRESUsageInAve\n1|RUNNING|2026-03-10T09:00:00|01:00:00||gres/gpu=1|\n"
        "2|PENDING|Unknown|00:00:00|||\n3|COMPLETED|Unknown|01:00:00||cpu=1|\n4|FAILED|Unknown|01:00:00||gres/gpu=1|\n"
    )
    listed = gpureport("ingest", "--list", "jobs.txt").out.splitlines()
    assert listed[0] == "1  job-1  RUNNING  2026-03-10T09:00:00.000  still running"
    assert [line.rpartition("  ")[2] for line in listed[1:3]] == ["not started", "without a GPU"]
    assert "rows of its steps (give sacct no -X)" in gpureport("analyze", "jobs.txt", "--run", "4").err
    assert "--run" not in gpureport("analyze", "jobs.txt").err


HEAD = "JobID|Elapsed|NTasks|AllocTRES|TRESUsageInAve\n"
JOB = "1|01:00:00||gres/gpu=8|\n"


@pytest.mark.parametrize(
    "steps",
    [
        "",
        "1.extern|01:00:00|1|gres/gpu=8|gres/gpuutil=800\n",
        "1.0|01:00:00||gres/gpu=8|gres/gpuutil=99\n",
        "1.batch|01:00:00|1|gres/gpu=4|gres/gpuutil=396\n",
        "1.batch|01:00:00|1|gres/gpu=8|gres/gpumem=18446744073709551614,gres/gpuutil=18446744073709551614\n",
        "1.0|01:00:00|8|gres/gpu=8|gres/gpuutil=800\n",
    ],
)
def test_use_that_is_not_known_is_no_figure(tmp_path: Path, steps: str) -> None:
    (tmp_path / "jobs.txt").write_text(HEAD + JOB + steps)
    with pytest.raises(GpureportError) as refused:
        gpureport.read(tmp_path / "jobs.txt")
    assert refused.value.code == "no_finished_run"


@pytest.mark.parametrize("row", ["", "|" * 40, "1|99-99:99:99|x|gres/gpu=999999999999|", "\0|\ud800"])
def test_hostile_rows(tmp_path: Path, row: str) -> None:
    for head in (HEAD, "timestamp,project_name,run_id,duration,gpu_count,gpu_energy\n"):
        (tmp_path / "jobs.txt").write_bytes(f"{head}{row}\n{row.replace('|', ',')}\n".encode(errors="surrogatepass"))
        with pytest.raises(GpureportError):
            gpureport.read(tmp_path / "jobs.txt")

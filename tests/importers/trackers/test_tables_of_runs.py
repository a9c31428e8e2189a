"""Tables with one row per run, which give GPU hours, mean use and energy; and databases of Trackio."""

import gzip
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.testing import analyze
from tests.importers.trackers.tracked import describe, hold, ids, recording, refused
from tests.readers.conftest import Hold
from tests.support.program import Program

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "readers" / "pairs" / "accounting"


def test_energy_alone_and_one_mean_are_said_in_words_that_agree(gpureport: Program, tmp_path: Path) -> None:
    table = (
        "timestamp,project_name,run_id,duration,gpu_energy,gpu_count,gpu_utilization_percent\n2026-03-09T04:04:43,p,"
    )
    for run, use in (("a", ""), ("b", "50")):
        (tmp_path / f"{run}.csv").write_text(f"{table}{run},3600,0.5,2,{use}\n")
    energy, mean = gpureport("fleet", "a.csv").out, gpureport("analyze", "b.csv").out
    assert ("GPU-minutes, which used 500 Wh" in energy, "recorded lost" in energy) == (True, False)
    assert ("spent 50% of the time computing on average" in mean, "too short" in mean) == (True, False)


def test_use_and_energy_come_back_and_nothing_is_judged() -> None:
    train = analyze(gpureport.read(f"{SAMPLES / 'sacct.txt'}#18194943")[0])
    assert (train.findings, {each.code for each in train.not_judged}) == ((), {"single_mean"})
    used = [each.metric("gpu_utilization_ratio") for each in train.statistics]
    assert [each.mean for each in used if each is not None] == pytest.approx([0.99] * 4)
    resnet = analyze(gpureport.read(f"{SAMPLES / 'emissions.csv'}#resnet*")[0])
    joules = sum(each.energy_joules or 0.0 for each in resnet.statistics)
    assert joules / 3.6e6 == pytest.approx(2.303, abs=0.001)


def test_a_fleet_and_a_table_that_is_no_log(gpureport: Program, tmp_path: Path) -> None:
    (jobs := tmp_path / "jobs").mkdir()
    (jobs / "sacct.txt").write_bytes((SAMPLES / "sacct.txt").read_bytes())
    done = gpureport("fleet", "jobs/sacct.txt")
    assert ("59% of 205 GPU-hours lost" in done.out, "all its GPUs: old-18201181)\n" in done.err) == (True, True)
    (jobs / "november.txt").write_text((SAMPLES / "sacct.txt").read_text().replace("-10-", "-11-"))
    # attempts of a job in several tables are different runs
    assert gpureport("ingest", "accounting:jobs").out.count("Stored train") == 2
    (jobs / "november.txt").unlink()
    for source, words in ((jobs, f"give {jobs / 'sacct.txt'}"), (f"accounting:{__file__}", "a table of")):
        refused = gpureport("analyze", str(source))
        assert (refused.code, refused.out, words in refused.err) == (3, "", True)


def test_a_folder_of_tables_and_the_means_of_repeated_runs(tmp_path: Path) -> None:
    head = "timestamp,project_name,run_id,duration,gpu_energy,gpu_count\n2026-03-09T04:04:43,p,"
    for run, seconds in enumerate((7910, 7920, 7930, 6390, 6400, 6410)):
        (folder := tmp_path / "ab"[run // 3]).mkdir(exist_ok=True)
        (folder / f"emissions_{run}.csv").write_text(f"{head}{run},{seconds},0.5,1\n")
    # what a table lacks comes from another
    (folder / "emissions_9.csv").write_text(f"{head}5,60,,1\n")
    runs = [run for step in "ab" for run in gpureport.read(tmp_path / step, labels={"step": step, "work": "1:run"})]
    (rate,) = gpureport.compare(runs).deltas_frame().query("metric == 'work_rate_hertz'").to_dict("records")
    assert (rate["after"] / rate["before"], rate["basis"]) == (pytest.approx(7920 / 6400, rel=0.001), "replicates")
    assert rate["interval_high"] - rate["interval_low"] < 0.01 * rate["before"]
    (tmp_path / "a" / "gpu.csv").write_text("timestamp, index, power.draw [W]\n2026/03/09 04:04:43, 0, 50 W\n" * 2)
    assert [len(gpureport.read(tmp_path / step)) for step in "ab"] == [1, 3]


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
    assert "rows for its steps (run sacct without -X)" in gpureport("analyze", "jobs.txt", "--run", "4").err
    assert "--run" not in gpureport("analyze", "jobs.txt").err


HEAD = "JobID|Elapsed|NTasks|AllocTRES|TRESUsageInAve\n"


def test_use_that_is_not_known_is_no_figure_and_hostile_rows(tmp_path: Path) -> None:
    def written(text: str) -> Path:
        (tmp_path / "jobs.txt").write_bytes(text.encode(errors="surrogatepass"))
        return tmp_path / "jobs.txt"

    for steps in (
        *("", "1.extern|01:00:00|1|gres/gpu=8|gres/gpuutil=800\n", "1.0|01:00:00||gres/gpu=8|gres/gpuutil=99\n"),
        *("1.batch|01:00:00|1|gres/gpu=4|gres/gpuutil=396\n", "1.0|01:00:00|8|gres/gpu=8|gres/gpuutil=800\n"),
        "1.batch|01:00:00|1|gres/gpu=8|gres/gpumem=18446744073709551614,gres/gpuutil=18446744073709551614\n",
    ):
        assert refused(written(HEAD + "1|01:00:00||gres/gpu=8|\n" + steps)).code == "no_finished_run", steps
    for row in ("", "|" * 40, "1|99-99:99:99|x|gres/gpu=999999999999|", "\0|\ud800"):
        for head in (HEAD, "timestamp,project_name,run_id,duration,gpu_count,gpu_energy\n"):
            refused(written(f"{head}{row}\n{row.replace('|', ',')}\n"))


_START = datetime(2026, 3, 14, 9, tzinfo=UTC)
_GPU = {"utilization": 50, "allocated_memory": 16.0, "total_memory": 80.0, "temp": 55, "power": 230.0, "sm_clock": 1410}
_GPU |= {"power_limit": 400.0, "throttle_power": 1, "nvlink": 2}
_HOST = {"cpu/0/utilization": 90.0, "cpu/1/utilization": 10.0, "cpu/utilization": 50.0, "memory/used": 4.0}


def _content(utilization: object = 50) -> dict[str, Any]:
    gpus = {f"gpu/{gpu}/{name}": value for gpu in range(2) for name, value in _GPU.items()}
    return gpus | _HOST | {"gpu/mean_utilization": 50, "gpu/0/utilization": utilization}


def database(path: Path, *, earlier: bool = False, names: tuple[str, ...] = ("base", "amp")) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(HERE.joinpath("trackio.sql").read_text(encoding="utf-8"))
        for place, name in enumerate(names):
            key = f"{place}{'a' * 31}"
            for row in range(30):
                at = (_START + timedelta(seconds=10 * row, hours=place)).isoformat()
                content = json.dumps(_content("NaN" if row == 3 else 50)).encode()
                connection.execute("insert into system_metrics values (?, ?, ?, ?)", (key, at, name, content))
                logged = json.dumps({"loss": 1 / (row + 1), "image": {"_type": "trackio.image"}}).encode()
                connection.execute("insert into metrics values (?, ?, ?, ?, ?)", (key, at, name, row, logged))
            at, sums = (_START + timedelta(days=1)).isoformat(), json.dumps({"gpu/mean_utilization": 50}).encode()
            connection.execute("insert into system_metrics values (?, ?, ?, ?)", (key, at, name, sums))
            config = json.dumps({"lr": 0.1, "_Username": "ada", "_Group": None})
            connection.execute("insert into configs values (?, ?, ?)", (key, name, config))
        if earlier:
            connection.executescript(HERE.joinpath("trackio_0.23.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


@pytest.mark.parametrize("earlier", [True, False])
def test_a_run_has_its_devices_metrics_and_params(tmp_path: Path, *, earlier: bool, update_golden: bool) -> None:
    source = database(tmp_path / "p.db", earlier=earlier)
    found = [describe(source, runs="base"), describe(source, runs="base", gpus=(1,))]
    hold(f"trackio/{'earlier' if earlier else 'now'}", found, update=update_golden)


def test_runs_are_listed_selected_and_compared(gpureport: Program, tmp_path: Path) -> None:
    source = database(tmp_path / "p.db")
    assert ids(source) == ["0" + "a" * 31, "1" + "a" * 31]
    assert ids(source, latest=1) == ids(f"trackio:{source}#amp") == ["1" + "a" * 31]
    listed = gpureport("ingest", "--list", str(source)).out
    assert [line.split()[1] for line in listed.splitlines()] == ["amp", "base"]
    assert listed.count("2 GPUs, host") == 2
    assert gpureport("compare", "trackio:p.db#base", "p.db#amp").code == 0
    assert refused(source, runs="none").code == "unknown_run"
    assert refused(f"trackio:{tmp_path}/absent.db").code == "cannot_read"


def test_what_is_broken_is_counted_or_left_out(tmp_path: Path, hold: Hold) -> None:
    changes = HERE.joinpath("trackio_damage.sql").read_text(encoding="utf-8").splitlines()[1:]
    for place, change in enumerate(changes):
        source = database(tmp_path / f"{place}.db", names=("base",))
        with sqlite3.connect(source) as connection:
            connection.execute(change)
        connection.close()
        before = source.read_bytes()
        hold(change, partial(recording, source))
        assert source.read_bytes() == before


def test_a_database_is_no_target(gpureport: Program, tmp_path: Path) -> None:
    source = database(tmp_path / "p.db")
    before = source.read_bytes()
    (tmp_path / "report.html").write_text("<html>")
    for target in ("p.db#base", "trackio:p.db#base"):
        assert gpureport("publish", "report.html", "--to", target).code == 3
    assert gpureport("report", "trackio:p.db#base", "-o", "p.db").code == 2
    assert source.read_bytes() == before

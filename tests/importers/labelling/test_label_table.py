"""A row of a table is a run's by the run's name, the number of its job, or machine and time; never by a guess."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SettingsError
from gpureport.importers.labelling.label_table import Doubt, LabelMatch, LabelTable
from gpureport.importers.labelling.node_lists import expand_node_list
from gpureport.testing import Device, Run, Source, recording
from tests.importers.written_logs import log

SACCT = """\
JobID|JobName|User|Account|Partition|NodeList|Start|End|State
4411|resnet|ada|vision|gpu|gpu[01-02]|2026-10-03T09:00:00|2026-10-03T10:00:00|COMPLETED
4411.batch|batch||vision||gpu01|2026-10-03T09:00:00|2026-10-03T10:00:00|COMPLETED
4411.0|python||vision||gpu[01-02]|2026-10-03T09:00:05|2026-10-03T10:00:00|COMPLETED
4412|say "hi"|bob|nlp|gpu|gpu03|2026-10-03T09:00:00|2026-10-03T11:00:00|CANCELLED by 1001
4413_7|sweep|bob|nlp|gpu|gpu03|2026-10-03T11:30:00|Unknown|RUNNING
4414|short|eve|nlp|gpu|gpu04|2026-10-03T09:00:00|2026-10-03T09:30:00|COMPLETED
4415|long|joe|nlp|gpu|gpu04|2026-10-03T08:00:00|2026-10-03T12:00:00|COMPLETED
4416|waits|joe|nlp|gpu|None assigned|Unknown|Unknown|PENDING
"""
HOUR = 3600
NINE = 1_791_018_000_000_000
"""2026-10-03T09:00:00, kept as if UTC."""


def table(folder: Path, text: str = SACCT) -> LabelTable:
    """Return a table as it is read."""
    path = folder / "jobs.csv"
    path.write_text(text)
    return LabelTable(path)


def run(name: str = "train", start: float = 60, length: float = 3500, **fields: object) -> Run:
    """Return a run that starts some seconds after nine, of a log of its name."""
    source = Source(kind="nvidia_smi", locator=f"logs/{name}.csv", sha256="")
    begun = NINE + round(start * 1e6)
    made = replace(recording(util=[50] * 2).run, name=name, sources=(source,), timezone=None)
    return replace(made, started=begun, ended=begun + round(length * 1e6), **fields)  # type: ignore[arg-type] # any field


def job(found: LabelMatch) -> str | Doubt | None:
    """Return the job of a run, or why it has none."""
    return dict(found.tags).get("job", found.doubt)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # the number of a job, in the name, the folder, a tag or a param
        (run("slurm-4411"), "4411"),
        (run("gpu_4413_7", start=3 * HOUR), "4413_7"),
        (replace(run(), sources=(Source(kind="nvidia_smi", locator="/logs/4412/gpu.csv", sha256=""),)), "4412"),
        (run(tags=(("job", "4414"),)), "4414"),
        (run(params=(("SLURM_JOB_ID", "4415"),)), "4415"),
        # a number that is not the job's: of another time, of another machine, a part of a longer one
        (run("step-4411", start=20 * HOUR), Doubt.NO_ROW),
        (run("seed-4411", tags=(("host", "gpu03"),)), "4412"),
        (run("14411"), Doubt.NO_ROW),
        (run("v0.4411"), Doubt.NO_ROW),
        # a job that is stated and not there is no other job of the machine
        (run(tags=(("job", "9999"), ("host", "gpu03"))), Doubt.NO_ROW),
        # machine and time
        (run(tags=(("host", "GPU01.cluster.example"),)), "4411"),
        (run(tags=(("host", "gpu03"),), start=3 * HOUR, length=9 * HOUR), "4413_7"),
        (run(tags=(("host", "gpu01"),), start=2 * HOUR), Doubt.NO_ROW),
        # on a shared machine none
        (run(tags=(("host", "gpu04"),), start=300, length=600), Doubt.SEVERAL),
        (run("other"), Doubt.NO_ROW),
    ],
)
def test_the_row_of_a_run(tmp_path: Path, given: Run, expected: str | Doubt) -> None:
    """Numbers are whole and must not contradict time and machine; what fits two rows gets none."""
    assert job(table(tmp_path).match(given)) == expected


def test_columns_are_tags(tmp_path: Path) -> None:
    """Those of sacct under the names of labels, of the machines only the run's; steps are no rows; a quote is text."""
    jobs = table(tmp_path)
    assert len(jobs.rows) == 6
    assert dict(jobs.find_tags(run("gpu01", tags=(("node", "gpu01"),)))) == {
        "job": "4411",
        "job_name": "resnet",
        "user": "ada",
        "account": "vision",
        "partition": "gpu",
        "node": "gpu01",
        "job_state": "COMPLETED",
    }
    tags = dict(jobs.find_tags(run("4412")))
    assert (tags["job_name"], tags["job_state"]) == ('say "hi"', "CANCELLED")
    assert set(jobs.matches) == {run().id}


def test_another_table(tmp_path: Path) -> None:
    """A row names a run, by its name, its file or its folder; unknown columns are tags of their own names."""
    text = "run;Cost Center;owner;AllocTRES\nbase;cc7;ada;gres/gpu=4\nnight/gpu.csv;cc8;bob;\nnight;cc9;eve\n"
    jobs = table(tmp_path, text)
    assert dict(jobs.find_tags(run("base"))) == {"cost_center": "cc7", "user": "ada", "alloc_tres": "gres/gpu=4"}
    source = Source(kind="nvidia_smi", locator="/data/night/gpu.csv", sha256="")
    assert dict(jobs.find_tags(run("gpu", sources=(source,)))) == {"cost_center": "cc8", "user": "bob"}
    assert jobs.unread == [4]
    (tmp_path / "base.csv").write_text(log())
    (found,) = gpureport.read(tmp_path / "base.csv", labels={"table": tmp_path / "jobs.csv"})
    assert dict(found.run.tags)["user"] == "ada"


@pytest.mark.parametrize("named", ["1", "w8/1", "runs/w8/1", "./runs/w8/1/", "/data/runs/w8/1", "w8/1/gpu.csv"])
def test_a_folder_is_named_as_it_is_typed(tmp_path: Path, named: str) -> None:
    """By any end of its path, with a slash or without; the folders above it are those of other runs too."""
    source = Source(kind="nvidia_smi", locator="/data/runs/w8/1/gpu.csv", sha256="")
    jobs = table(tmp_path, f"run,user\n{named},ada\nw8,eve\n.,eve\n")
    assert dict(jobs.find_tags(run("x", sources=(source,)))) == {"user": "ada"}


@pytest.mark.parametrize(
    ("zone", "stamp", "expected"),
    [
        (None, "2026-10-03T09:00:00", "7"),
        (None, "2026-10-03T09:00:00+0200", Doubt.TIMES),
        ("UTC", "2026-10-03T09:00:00", Doubt.TIMES),
        ("UTC", "2026-10-03T11:00:00+0200", "7"),
        ("UTC", "1791018000", "7"),
        ("Europe/Berlin", "2026-10-03T11:00:00", "7"),
        ("Europe/Berlin", "2026-10-03T09:00:00", Doubt.NO_ROW),
    ],
)
def test_times_are_compared_in_one_base(tmp_path: Path, zone: str | None, stamp: str, expected: object) -> None:
    """Local times with local times, stamps with a zone with those in UTC; nothing else is assumed."""
    hour = re.sub("(09|11):00", lambda found: f"{int(found[1]) + 1}:00", stamp) if "T" in stamp else "1791021600"
    jobs = table(tmp_path, f"JobID|NodeList|Start|End\n7|gpu01|{stamp}|{hour}\n")
    assert job(jobs.match(run(tags=(("host", "gpu01"),), timezone=zone))) == expected


def test_a_job_of_several_machines_and_rows(tmp_path: Path) -> None:
    """Devices name machines too; a job that was started twice is told by time, else it is none."""
    text = "job,user,node,start,end\n" + "".join(
        f"81,{user},n[1-2],2026-10-03 {start}:00:00,2026-10-03 {start + 1}:00:00\n"
        for user, start in (("ada", 9), ("bob", 12))
    )
    jobs = table(tmp_path, text.replace("n[1-2]", '"n[1-2]"'))
    devices = tuple(Device(id=f"n{node}/gpu:0", index=0, node=f"n{node}") for node in (1, 2))
    assert dict(jobs.find_tags(run(devices=devices)))["user"] == "ada"
    assert dict(jobs.find_tags(run("job81", start=3.1 * HOUR)))["user"] == "bob"
    undated = replace(run().quality, synthetic_time=True)
    assert jobs.match(run(tags=(("job", "81"),), quality=undated)).doubt is Doubt.SEVERAL


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("r[1-2]n[08-09]", ["r1n08", "r1n09", "r2n08", "r2n09"]),
        ("a b;c", ["a", "b", "c"]),
        ("n[1-999999999]", ["n1-999999999"]),
        ("n[1-60000] m[1-60000]", ["n[1-60000]", "m[1-60000]"]),
        ("n[" + "0-99999," * 20_000 + "0]", ["n[" + "0-99999," * 20_000 + "0]"]),
        ("", []),
    ],
)
def test_node_lists(text: str, nodes: list[str]) -> None:
    """Ranges keep their zeros; one beyond reason is a name."""
    assert list(expand_node_list(text)) == nodes


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "4411|resnet|ada\n"])
def test_a_table_of_nothing_is_refused(tmp_path: Path, text: str) -> None:
    """Without a key no row can be a run's; the message holds the command to type."""
    with pytest.raises(SettingsError, match="no column names a run") as refused:
        table(tmp_path, text)
    assert "sacct -aXP" in str(refused.value)
    with pytest.raises(SettingsError, match="No such file"):
        LabelTable(tmp_path / "none.csv")
    (tmp_path / "jobs.csv.gz").write_bytes(gzip.compress(SACCT.encode())[:-20])
    with pytest.raises(SettingsError, match="copy or compress it again"):
        LabelTable(tmp_path / "jobs.csv.gz")


def test_jobs_on_more_machines_than_there_are(tmp_path: Path) -> None:
    """A kilobyte of ranges would else fill the memory."""
    rows = "".join(f"{job}|m{job}[0-99998]\n" for job in range(30))
    with pytest.raises(SettingsError, match=r"the jobs up to line 22 ran on more than 2,000,000 machines together"):
        table(tmp_path, "JobID|NodeList\n" + rows)

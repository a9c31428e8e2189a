"""`--map` on the command line, and the map that an unknown table is refused with."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.support import logs as other_tools


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """Return a folder with a table and a map of it, which is the current one."""
    (tmp_path / "power.csv").write_text(other_tools.wrapper_csv(30).replace("when", "time"))
    (tmp_path / "map.toml").write_text(other_tools.MAP.replace("when", "time"))
    return tmp_path


def test_an_unknown_table_is_refused_with_the_way_to_a_map(wrapper: Path, gpureport: Program) -> None:
    del wrapper
    done = gpureport("analyze", "power.csv")
    assert (done.code, done.out, "--source-kind mapped" in done.err) == (3, "", True)


def test_a_draft_of_a_map_holds_what_the_header_proves(tmp_path: Path, gpureport: Program) -> None:
    header = "time,gpu0 power [W],GPU1 power,memory used,card speed,cpu %"
    rows = (f"03/14/2026 09:26:{tick:02d} AM,70,80,1000,5,{tick}" for tick in range(30))
    (tmp_path / "sheet.csv").write_text("\n".join((header, *rows, "")))
    for command in ("ingest", "analyze"):
        done = gpureport(command, "sheet.csv", "--source-kind", "mapped")
        assert (done.code, done.err.count("\n")) == (3, 1)
    told = tomllib.loads(done.out)
    assert told["time"]["column"] == "time"
    assert told["columns"] == {
        "gpu0 power [W]": {"metric": "gpu_power_watts", "unit": "W", "device": "gpu:0"},
        "GPU1 power": {"metric": "gpu_power_watts", "device": "gpu:1"},
        "memory used": {"metric": "gpu_memory_used_bytes", "unit": "?", "device": "gpu:0"},
        "cpu %": {"metric": "cpu_utilization_ratio", "unit": "%"},
    }
    (tmp_path / "map.toml").write_text(done.out)
    assert gpureport("ingest", "sheet.csv", "--map", "map.toml").code == 2
    completed = done.out.replace('"?"', '"MiB"').replace('"iso"', '"%m/%d/%Y %I:%M:%S %p"')
    (tmp_path / "map.toml").write_text(completed)
    done = gpureport("ingest", "sheet.csv", "--map", "map.toml")
    assert (done.code, "no line lost" in done.out) == (0, True)


def test_a_map_works_on_every_command_of_a_source(wrapper: Path, gpureport: Program) -> None:
    del wrapper
    stored = gpureport("ingest", "-v", "power.csv", "--map", "map.toml")
    assert (stored.code, "  column GPU0 power: gpu_power_watts\n" in stored.out) == (0, True)
    assert gpureport("analyze", "power.csv", "--map", "map.toml", "--format", "json").code == 0
    assert gpureport("report", "power.csv", "--map", "map.toml", "-o", "r.md").code == 0
    refused = gpureport("analyze", "power", "--map", "map.toml")
    assert (refused.code, "--map: power is stored" in refused.err) == (2, True)


def test_a_zone_in_the_map_is_that_of_the_run(wrapper: Path, gpureport: Program) -> None:
    text = other_tools.wrapper_csv(3)
    for second in range(3):
        text = text.replace(f"{other_tools.EPOCH + second},", f"{other_tools.iso_stamp(second)},")
    (wrapper / "power.csv").write_text(text.replace("when", "time"))
    told = (wrapper / "map.toml").read_text().replace('"epoch_s"', '"iso"\nzone = "Europe/Berlin"')
    (wrapper / "map.toml").write_text(told)
    started = []
    for more in ([], ["--tz", "UTC"]):
        told = json.loads(gpureport("analyze", "power.csv", "--map", "map.toml", "--format", "json", *more).out)
        started.append(told["runs"][0]["run"]["started"])
    assert started == ["2026-03-14T09:00:00.000+01:00", "2026-03-14T09:00:00.000+00:00"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[time", "gpureport: bad.toml: not TOML ("),
        ("", "gpureport: bad.toml: it maps no column; "),
        ('[columns.a]\nmetric = "x"', "gpureport: bad.toml: no metric 'x' (column 'a'); "),
    ],
)
def test_a_bad_map_is_a_mistake_of_use(wrapper: Path, gpureport: Program, text: str, message: str) -> None:
    (wrapper / "bad.toml").write_text(text)
    done = gpureport("analyze", "power.csv", "--map", "bad.toml")
    assert (done.code, done.err.startswith(message), done.err.count("\n")) == (2, True, 1)

"""`--map` on the command line, and the map that an unknown table is refused with."""

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers import other_tools


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """Return a folder with a table and a map of it, which is the current one."""
    (tmp_path / "power.csv").write_text(other_tools.wrapper_csv(30).replace("when", "time"))
    (tmp_path / "map.toml").write_text(other_tools.MAP.replace("when", "time"))
    return tmp_path


def test_an_unknown_table_is_refused_with_a_map(wrapper: Path, gpureport: Program) -> None:
    """One line says what to do; below it stands a map that reads the table once it is saved."""
    del wrapper
    done = gpureport("analyze", "power.csv")
    first, *rest = done.err.splitlines()
    assert (done.code, done.out) == (3, "")
    assert first == (
        "gpureport: power.csv: not a recognised GPU log (first line: time,GPU0 power,GPU1 power,RAM); "
        "save what stands below as map.toml, correct it, then give --map map.toml"
    )
    Path("told.toml").write_text("\n".join(rest))
    assert gpureport("analyze", "power.csv", "--map", "told.toml").code == 0


def test_other_time_stamps_are_refused_with_the_way_to_a_map(wrapper: Path, gpureport: Program) -> None:
    """A query whose stamps a spreadsheet wrote: each message says what to type, and it works."""
    rows = (f"03/14/2026 09:26:{tick:02d} AM,0,{50 + tick % 9}" for tick in range(30))
    (wrapper / "sheet.csv").write_text("\n".join(("timestamp,index,utilization.gpu [%]", *rows, "")))
    refused = gpureport("analyze", "sheet.csv")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err == (
        "gpureport: sheet.csv: its time stamps are none that nvidia-smi writes "
        "(line 2 begins '03/14/2026 09:26:00 AM,0'); "
        "--source-kind mapped prints a map in which their format can be said\n"
    )
    for command in ("ingest", "analyze"):
        draft = gpureport(command, "sheet.csv", "--source-kind", "mapped")
        wanted = (
            "no map says what its columns are; save standard output as map.toml, correct it, then give --map map.toml"
        )
        assert (draft.code, draft.err) == (3, f"gpureport: sheet.csv: {wanted}\n")
        Path("sheet.toml").write_text(draft.out)
    done = gpureport("ingest", "sheet.csv", "--map", "sheet.toml")
    assert (done.code, "no line lost" in done.out) == (0, True)


def test_a_map_works_on_every_command_of_a_source(wrapper: Path, gpureport: Program) -> None:
    """ingest, analyze and report take it; what is stored was placed by it."""
    del wrapper
    assert gpureport("ingest", "power.csv", "--map", "map.toml").code == 0
    assert gpureport("analyze", "power.csv", "--map", "map.toml", "--format", "json").code == 0
    assert gpureport("report", "power.csv", "--map", "map.toml", "-o", "r.md").code == 0
    explained = gpureport("ingest", "power.csv", "--map", "map.toml", "--explain").out
    assert "kind: table with a map, as the options say" in explained
    assert "time: zone UTC, as its stamps say" in explained
    refused = gpureport("analyze", "power", "--map", "map.toml")
    assert (refused.code, "--map: power is stored" in refused.err) == (2, True)


def test_a_zone_in_the_map_is_that_of_the_run(wrapper: Path, gpureport: Program) -> None:
    """`zone` is what --tz would say, and --tz wins."""
    text = other_tools.wrapper_csv(3)
    for second in range(3):
        text = text.replace(f"{other_tools.EPOCH + second},", f"{other_tools.stamp(second)},")
    (wrapper / "power.csv").write_text(text.replace("when", "time"))
    told = (wrapper / "map.toml").read_text().replace('"epoch_s"', '"iso"\nzone = "Europe/Berlin"')
    (wrapper / "map.toml").write_text(told)
    explained = [
        gpureport("ingest", "power.csv", "--map", "map.toml", "--explain", *more).out for more in ([], ["--tz", "UTC"])
    ]
    assert "2026-03-14 09:00:00.000+01:00" in explained[0]
    assert "2026-03-14 09:00:00.000+00:00" in explained[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[time", "gpureport: bad.toml: not TOML ("),
        ("", "gpureport: bad.toml: it maps no column; "),
        ('[columns.a]\nmetric = "x"', "gpureport: bad.toml: no metric 'x' (column 'a'); "),
    ],
)
def test_a_bad_map_is_a_mistake_of_use(wrapper: Path, gpureport: Program, text: str, message: str) -> None:
    """Exit code 2 and one line."""
    (wrapper / "bad.toml").write_text(text)
    done = gpureport("analyze", "power.csv", "--map", "bad.toml")
    assert (done.code, done.err.startswith(message), done.err.count("\n")) == (2, True, 1)

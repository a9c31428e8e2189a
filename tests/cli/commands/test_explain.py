"""`gpureport explain`: every check, class, figure and metric by name, and what to record."""

import json
import re
from pathlib import Path

import pytest

import gpureport as api
from tests.cli.logs import SAMPLES, log
from tests.cli.program import Program


def listed(gpureport: Program) -> dict[str, list[str]]:
    """Return the names that can be explained, by the first word of the heading they stand under."""
    found: dict[str, list[str]] = {}
    for line in gpureport("explain").out.splitlines()[1:]:
        if line and not line.startswith(" "):
            own = found.setdefault(line.partition(" ")[0], [])
        elif line.startswith("  ") and "  " in line.strip():
            own.append(line.split()[0])
        elif line:
            own += line.replace(",", " ").split()
    return found


def explained(gpureport: Program, *words: str) -> str:
    done = gpureport("explain", *words)
    assert (done.code, done.err) == (0, ""), words
    return done.out


def test_every_name_is_explained(gpureport: Program) -> None:
    names = listed(gpureport)
    assert [len(own) > 1 for own in names.values()] == [False, *[True] * (len(names) - 1)]
    kinds = [*names["Kinds"], *names["Families"]]
    assert {"thermal_throttle", "io_bound", "no_progress"} <= set(kinds)
    for name in {each for own in names.values() for each in own} - {"recording"}:
        text = explained(gpureport, name)
        assert text.startswith(name), name
        assert "\x1b" not in text
        assert name not in kinds or len(text.splitlines()) <= 40, name
        assert name not in kinds or f"gpureport explain {name} --detail full" in " ".join(text.split()), name


def test_a_rule_on_every_figure_can_be_copied(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(60))
    for name in listed(gpureport)["Figures"]:
        (rule,) = re.findall("--fail-on '(.+)'", explained(gpureport, name))
        assert gpureport("analyze", "gpu.csv", "--fail-on", rule).code in {0, 1}, rule


@pytest.mark.slow
def test_findings_recommend_what_explain_tells(gpureport: Program) -> None:
    texts: dict[str, str] = {}
    for folder in sorted(SAMPLES.iterdir()):
        own = ["--map", str(folder / "map.toml"), str(folder / "wrapper.csv")]
        document = json.loads(
            gpureport("analyze", *(own if folder.name == "mapped" else [str(folder)]), "--format", "json").out
        )
        for found in (finding for run in document["runs"] for finding in run["findings"]):
            kind, titles = found["kind"], found["recommendation"].rpartition(": ")[2].rstrip(".").split("; ")
            texts.setdefault(kind, " ".join(explained(gpureport, kind, "--detail", "full").split()))
            assert not found["steps"] or all(title in texts[kind] for title in titles), (folder.name, kind)


def test_what_to_record_is_understood_by_the_importer(gpureport: Program, tmp_path: Path) -> None:
    text = explained(gpureport, "recording")
    fields = re.findall(r"--query-gpu=(\S+)", text)[0].split(",")
    assert len(fields) == len(set(fields))
    assert {"timestamp", "index", "uuid", "driver_version", "utilization.gpu"} <= set(fields)
    assert len(text.splitlines()) < 60
    own = {
        "mig.mode.current": "[N/A]",
        "clocks_event_reasons.active": "0x1",
        "timestamp": "2026/03/14 09:00:{:02}.000",
        "name": "NVIDIA L4",
        "uuid": "GPU-1",
    }
    own |= {field: "No" for field in fields if field.endswith((".pending", ".failure"))}
    rows = [", ".join(own.get(field, "1") for field in fields).format(second) for second in range(30)]
    (tmp_path / "gpu.csv").write_text("\n".join([", ".join(fields), *rows, ""]))
    (recording,) = api.read(tmp_path / "gpu.csv")
    assert [name for name in recording.series.column_names if name.startswith("extra_")] == []
    assert len(recording.series.column_names) > 20


def test_other_names_lead_to_what_is_explained(gpureport: Program) -> None:
    for name, meant in {
        "clocks.sm": "gpu_sm_clock_hertz",
        "power.draw.average": "gpu_power_watts",
        "hw.gpu.utilization": "gpu_utilization_ratio",
        "clocks_throttle_reasons.active": "clock_event_sw_power_cap",
        "no_data": "no_samples",
    }.items():
        assert meant in explained(gpureport, name), name
    assert (
        explained(gpureport, "Slow start") == explained(gpureport, "SLOW START") == explained(gpureport, "startup_idle")
    )


def test_a_name_that_is_not_quite_one_leads_to_what_there_is(gpureport: Program) -> None:
    for name, nearest in {
        "idle_gp": "idle_gap",
        "gpu_utilisation_ratio": "gpu_utilization_ratio",
        "utilisation": "utilization.gpu",
        "recordng": "recording",
        "gpu_util": "gpu_utilization_ratio",
        "power.drow": "power.draw",
        "clocks.smm": "clocks.current.sm",
        "short_pausess": "short_pauses",
        "vram_used": "memory.used",
        "throttle": "thermal_throttle",
        "idle_ration": "idle_ratio",
        "slow strt": "startup_idle",
        "weather": "gpureport explain",
    }.items():
        done = gpureport("explain", name)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), name
        assert nearest in done.err.partition(name)[2], done.err


def test_limits_are_those_in_force(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpureport.toml").write_text("[rules.throttling]\nmerge = 45\n")
    text = " ".join(explained(gpureport, "throttling", "--detail", "full").split())
    assert re.search(r"merge 45 s; settings: gpureport\.toml", text)

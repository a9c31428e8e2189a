"""The worst fact of a finding and its effect: figures from evidence and pictures, for each kind that has tiles."""

from collections.abc import Sequence

import numpy as np
import pytest

from gpureport.report.model.head import Tile
from gpureport.report.model.pictures import SignalHistory, SignalLine, SignalPanel
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.headlines.finding_headlines import find_worst
from gpureport.report.sections.head.tiles.finding_tiles import list_finding_tiles
from gpureport.testing import Evidence, Finding
from tests.report import examples, sample_reports
from tests.report.sections.head.headlines.test_finding_headlines import finding, seen

UTIL, CLOCK, MEMORY = "gpu_utilization_ratio", "gpu_sm_clock_hertz", "gpu_memory_used_bytes"
BUSY = seen(UTIL, "mean", 0.42)
FALL = seen(CLOCK, "mean, of that of other busy samples", 0.88)
FULL = (seen(MEMORY, "max, of installed", 0.97), seen(MEMORY, "free at the peak", 2.2 * 2**30, "By"))
LEAK = (seen(MEMORY, "growth a second", 2**30 / 60, "By/s"), seen("time until memory is full", "", 1324.0, "s"))
GAPS = seen("idle time of this GPU in gaps", "share of the job", 0.29)
STALLS = (seen("idle time", "mean of one period", 13.0, "s"), seen("idle time", "share of the job", 0.14))
PERIOD = seen("period", "mean distance of starts", 93.0, "s")
USE = "GPU use: 42% GPU 0 (For 1 min 30 s)"


def history(
    quantity: str, usual: float | None = None, meanwhile: float | None = None, limit_text: str = ""
) -> SignalHistory:
    """Return a picture of one panel."""
    line = SignalLine(label="GPU 2", mean=np.ones(1))
    panel = SignalPanel(
        quantity=quantity,
        label=f"{quantity}, 0 to 9",
        lines=(line,),
        low=0,
        high=9,
        usual=usual,
        meanwhile=meanwhile,
        limit_text=limit_text,
    )
    return SignalHistory(gpu="GPU 2", title="", caption="", panels=(panel,), start=0, end=1, bucket_seconds=1, ticks=())


def write(tile: Tile) -> str:
    """Return a tile in one line."""
    change = f" {tile.change.arrow} {tile.change.text}" if tile.change else ""
    before = f"{tile.before} → " if tile.before else ""
    return f"{tile.label}: {before}{tile.value} {tile.unit}{change} ({tile.context})".replace("\N{NO-BREAK SPACE}", " ")


def list_tiles(found: Finding, picture: SignalHistory | None = None) -> list[str]:
    """Return the tiles of a finding in a run of ten minutes."""
    recording, analysis = examples.pair(examples.run(gpus=2), (found,))
    worst = find_worst([ReportRun(label="a", step="a", recording=recording, analysis=analysis)])
    assert worst is not None
    return [write(tile) for tile in list_finding_tiles(worst, picture)]


@pytest.mark.parametrize(
    ("kind", "evidence", "tiles"),
    [
        ("cpu_bound", seen("cpu_utilization_ratio", "median", 0.94), "CPU use meanwhile: 94%  (Median of all cores)"),
        (
            "cpu_bound_single",
            seen("cpu_busiest_core_ratio", "median", 1.0),
            "Busiest CPU core meanwhile: 100%  (Median)",
        ),
        ("io_bound", seen("cpu_iowait_ratio", "mean", 0.61), "CPU waiting for storage: 61%  (On average meanwhile)"),
        (
            "transfer_bound",
            seen("PCIe traffic", "mean of the busier direction", 0.74),
            "PCIe bandwidth used: 74%  (Of the busier direction)",
        ),
    ],
)
def test_waiting_shows_how_busy_the_other_side_is(kind: str, evidence: Evidence, tiles: str) -> None:
    """How busy GPUs were comes first; without its evidence the second tile is missing."""
    assert list_tiles(finding(kind, BUSY, evidence)) == [USE, tiles]
    assert list_tiles(finding(kind, BUSY)) == [USE]


@pytest.mark.parametrize("kind", ["underutilised", "low_util_cause_unknown"])
def test_low_use_shows_how_busy_gpus_were(kind: str) -> None:
    """Nothing is made up without the mean."""
    assert list_tiles(finding(kind, BUSY)) == [USE]
    assert list_tiles(finding(kind)) == []


@pytest.mark.parametrize(("kind", "when"), [("thermal_throttle", "hot"), ("hw_throttle", "slowed")])
def test_a_slowed_gpu_shows_its_clock_before_and_meanwhile(kind: str, when: str) -> None:
    """In MHz from the picture, in per cent from the evidence."""
    tiles = list_tiles(finding(kind, FALL), history("Clock", 1710.4, 1497.2))
    assert tiles == [f"Clock of GPU 2 while {when}: 1,710 → 1,497 MHz down −12% (For 1 min 30 s)"]


@pytest.mark.parametrize(
    ("evidence", "picture"),
    [
        ((), history("Clock", 1710, 1497)),
        ((FALL,), None),
        ((FALL,), history("Clock memory", 1710, 1497)),
        ((FALL,), history("Clock", None, 1497)),
        ((FALL,), history("Clock", 1710, None)),
        ((FALL,), history("Clock", 1497, 1710)),
    ],
)
def test_a_clock_without_a_visible_fall_has_no_tile(
    evidence: Sequence[Evidence], picture: SignalHistory | None
) -> None:
    """Evidence and picture both have to show it."""
    assert list_tiles(finding("thermal_throttle", *evidence), picture) == []


def test_low_power_shows_what_the_gpu_draws_beside_its_limit() -> None:
    """Only where the picture shows stretches of it."""
    found = finding("hollow_util", BUSY, cause="hang")
    power = history("Power", 300.0, 72.4, "limit 400 W")
    assert list_tiles(found, power) == [USE, "Power of GPU 2 meanwhile: 72 W (Limit 400 W)"]
    assert list_tiles(found, history("Power", 300.0)) == [USE]
    assert list_tiles(found) == [USE]


def test_full_memory_shows_what_is_left() -> None:
    """Both figures or none."""
    assert list_tiles(finding("mem_pressure", *FULL)) == [
        "GPU memory used: 97% GPU 0 (At its peak, reserved memory aside)",
        "Memory left: 2.2 GiB (At the peak)",
    ]
    assert list_tiles(finding("mem_pressure", FULL[0])) == []


def test_growing_memory_shows_when_it_is_full() -> None:
    """The rate is that of a minute."""
    assert list_tiles(finding("mem_leak", *LEAK)) == [
        "Memory growth: 1.0 GiB a minute (GPU 0)",
        "Time until it is full: 22 min  (At this rate)",
    ]
    assert list_tiles(finding("mem_leak", LEAK[0])) == []


def test_gaps_show_their_share_and_the_longest() -> None:
    """A finding without stretches has no longest one."""
    assert list_tiles(finding("idle_gap", GAPS)) == [
        "Idle in gaps: 29% of the job (GPU 0)",
        "Longest gap: 1 min 30 s  (Of 1 gap)",
    ]
    assert list_tiles(finding("idle_gap", GAPS, span=None)) == []


def test_stalls_show_their_share_and_how_long_one_takes() -> None:
    """How often they come is said where it is known."""
    share = "Idle in stalls: 14% of the job (GPU 0)"
    assert list_tiles(finding("periodic_stall", *STALLS, PERIOD)) == [share, "One stall: 13 s  (Every 1 min 33 s)"]
    assert list_tiles(finding("periodic_stall", *STALLS)) == [share, "One stall: 13 s  (Again and again)"]
    assert list_tiles(finding("periodic_stall", STALLS[0])) == []


def test_a_kind_without_tiles_has_none() -> None:
    """The figures of every run take their place."""
    assert list_tiles(finding("log_gap", devices=())) == []


def test_the_clock_of_a_sample_is_the_one_of_its_picture() -> None:
    """Tile and note of the panel agree."""
    report = sample_reports.report_on(("thermal_throttle",))
    assert report.worst is not None
    clock = next(panel for panel in report.worst.panels if panel.quantity == "Clock")
    tile = next(tile for tile in report.tiles if tile.label.startswith("Clock"))
    assert clock.note == f"{tile.before} → {tile.value}\N{NO-BREAK SPACE}{tile.unit} while hot"

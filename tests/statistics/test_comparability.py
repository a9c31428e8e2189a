"""Whether two steps were recorded alike, and what becomes of findings between them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpureport import Analysis
from gpureport.testing import GIB, Device, Finding, NotJudged, Source, Work, finding
from tests.statistics.runs import IDLE, MEMORY, PER_WORK, TRAINING_RATE, document, judged, made, rates
from tests.support.tables import read_table

H100 = Device(
    id="gpu:0",
    index=0,
    model="NVIDIA H100 80GB HBM3",
    driver="550.54",
    power_limit_watts=700.0,
    power_window="1 s",
    memory_total_bytes=80 * GIB,
)


def run(name: str, device: Device = H100, *, seconds: int = 600, gpus: int = 1, **more: Any) -> Analysis:
    given = {"util": [[90.0] * (seconds + 1)] * gpus} | more
    return made(name, device=device, **given)


def checks(before: Analysis, after: Analysis) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in document(before, after)["comparability"]}


def test_what_differs_is_doubtful_and_what_is_missing_is_unknown() -> None:
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("gpu_models", {"model": "NVIDIA L4"}, {"model": None}),
        ("driver", {"driver": "610.1"}, {"driver": None}),
        ("gpu_memory", {"memory_total_bytes": 24 * GIB}, {"memory_total_bytes": None}),
        ("power_limit", {"power_limit_watts": 350.0}, {"power_limit_watts": None}),
    ]
    for check, other, silent in cases:
        differs, missing = (checks(run("a"), run("b", replace(H100, **each)))[check] for each in (other, silent))
        assert (differs["comparable"], differs["reason_code"]) == (False, check), check
        assert (missing["comparable"], missing["reason_code"], missing["after"]) == (None, "not_known", None), check


def test_power_read_in_another_way_is_doubtful() -> None:
    cases: list[tuple[tuple[str, str], tuple[str, str], bool | None]] = [
        (("power", "1 s"), ("power", "1 s"), True),
        (("power", "1 s"), ("power", "instant"), False),
        (("power", "unknown"), ("power", "1 s"), None),
        (("power", "1 s"), ("clock", "1 s"), None),
    ]
    for before, after, comparable in cases:
        sides = [
            run(name, replace(H100, power_window=window), **{metric: 200.0})  # type: ignore[arg-type]  # a series
            for name, (metric, window) in (("a", before), ("b", after))
        ]
        assert checks(*sides)["power_reading"]["comparable"] is comparable, (before, after)


def test_less_than_twenty_seconds_are_too_short() -> None:
    found = document(run("a"), run("b", seconds=19))
    assert {check["check"]: check["comparable"] for check in found["comparability"]}["observed_time"] is False
    assert {each["reason_check"] for each in found["deltas"] if each["difference"] is not None} == {"observed_time"}
    # repetitions of 20 s and more come to a time together; many of a few seconds are none
    for lengths, is_enough in (([50, 50, 50], True), ([15, 15, 15, 15], False), ([15, 70], True)):
        runs = [run(f"s{at}", seconds=each, step="s") for at, each in enumerate(lengths)]
        told = document(run("a"), *runs)["comparability"]
        assert {check["check"]: check["comparable"] for check in told}["observed_time"] is is_enough, lengths


def test_work_and_zones_are_doubted_only_where_they_differ() -> None:
    steps, tokens = (run(unit, work=Work(amount=5, unit=unit)) for unit in ("steps", "tokens"))
    assert checks(steps, tokens)["work_unit"]["comparable"] is False
    assert checks(run("a"), tokens)["work_unit"]["comparable"] is False
    assert checks(run("a"), run("b"))["work_unit"]["comparable"] is None
    assert checks(run("a"), run("a"))["different_runs"]["comparable"] is False
    sources = ((Source(kind=kind, locator=kind, sha256=""),) for kind in ("mlflow", "neptune"))
    trackers = checks(*(run(each[0].kind, info={"sources": each}) for each in sources))["source_kind"]
    assert (trackers["before"], trackers["after"], trackers["comparable"]) == ("mlflow", "neptune", False)
    assert {MEMORY, IDLE} <= set(trackers["touches"])
    zoned = {zone: run(str(zone), info={"timezone": zone}) for zone in (None, "UTC", "Europe/Berlin")}
    for before, after, comparable in ((None, "UTC", None), (None, None, None), ("UTC", "Europe/Berlin", True)):
        other = replace(zoned[after], run=replace(zoned[after].run, id="other", name="other"))
        zone = checks(zoned[before], other)["timezone"]
        assert (zone["before"], zone["after"], zone["comparable"]) == (before, after, comparable)


def test_a_log_that_lacks_an_end_is_not_compared_with_a_whole_one() -> None:
    util, memory = [0.0] * 20 + [90.0] * 200 + [0.0] * 20, [0.5] + [9.0] * 238 + [0.5]
    work, speed = Work(amount=1e5, unit="images"), rates(500, 200, name="images_per_second")
    for *sides, training, reason in read_table(Path(__file__).with_name("edges.tsv")):
        steps = [(step, rows.split(":")) for step, side in zip("ab", sides, strict=True) for rows in side.split()]
        cut = [(step, slice(int(start), int(end))) for step, (start, end) in steps]
        more: dict[str, Any] = {"work": work, "training": speed if training else ()}
        runs = (made(f"{step}{at}", step=step, util=util[at], memory=memory[at], **more) for step, at in cut)
        told = {each["metric"]: each["reason_check"] for each in document(*runs)["deltas"]}
        assert ({told[PER_WORK], told[TRAINING_RATE]} == {"log_edges"}) is (reason == "log_edges"), sides


GAP = finding("idle_gap", (100, 120), lost=20.0, cause="data")
HOT = finding("thermal_throttle", (0, 10), lost=1.0)
LATER = finding("idle_gap", (100, 120), lost=20.0, cause="data", devices=("gpu:1",))
MISSING = NotJudged(kind="idle_gap", device=None, reason="no", recording="")
BASE = run("base", gpus=2)


def having(
    name: str, *findings: Finding, step: str | None = None, seconds: int = 600, missing: Sequence[NotJudged] = ()
) -> Analysis:
    one = BASE if seconds == 600 else run("short", gpus=2, seconds=seconds)
    return judged(one, *findings, not_judged=missing, info={"id": name, "name": name, "step": step})


def became(*runs: Analysis) -> dict[str, list[dict[str, Any]]]:
    return {change: found for change, found in document(*runs)["findings"].items() if found}


def test_what_becomes_of_a_finding() -> None:
    cases: list[tuple[Analysis, Analysis, dict[str, str]]] = [
        (having("a", GAP), having("b", replace(GAP, devices=("gpu:0", "gpu:1"))), {"persisting": ""}),
        (having("a", GAP), having("b", replace(GAP, cause="another")), {"new": "", "resolved": ""}),
        (having("a", GAP), having("b", missing=[MISSING]), {"cannot_tell": "not_judged"}),
        (having("a", missing=[MISSING]), having("b", GAP), {"cannot_tell": "not_judged"}),
        (having("a", GAP), having("b", missing=[replace(MISSING, device="gpu:1")]), {"resolved": ""}),
        (having("a", GAP), having("b", seconds=50), {"cannot_tell": "too_short"}),
    ]
    for place, (before, after, expected) in enumerate(cases):
        codes = {change: found[0]["reason_code"] for change, found in became(before, after).items()}
        assert codes == expected, place


def test_findings_are_counted_over_runs_and_devices() -> None:
    (stays,) = became(having("a", GAP, step="s"), having("b", step="s"), having("c", GAP))["persisting"]
    assert (stays["before"]["runs"], stays["before"]["lost_gpu_seconds"]) == (1, 10.0)
    for other in (having("d", step="s", missing=[MISSING]), having("d", step="s", seconds=50)):
        (gone,) = became(having("a", GAP), having("b", step="s"), having("c", step="s"), other)["resolved"]
        assert (gone["reason_code"], gone["judged"]) == ("", [2, 3])
    found = document(having("a", GAP, HOT), having("b", LATER))["gains"][1]["findings"]
    kinds = {change: [each["kind"] for each in all_of] for change, all_of in found.items() if all_of}
    assert kinds == {"persisting": ["idle_gap"], "resolved": ["thermal_throttle"]}

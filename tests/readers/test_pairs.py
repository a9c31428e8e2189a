"""Each pair of a log and its expectation; and what is found in logs that say little, or what went wrong."""

from pathlib import Path

import pytest

from gpureport.testing import Confidence, analyze, findings_of
from tests.readers import pairs
from tests.readers.pairs import PAIRS
from tests.support.logs import log, read, read_text, stamp


@pytest.mark.parametrize("pair", pairs.list_pairs(), ids=lambda pair: pair.relative_to(pairs.PAIRS).as_posix())
def test_pair(pair: Path, tmp_path: Path, *, update_golden: bool) -> None:
    expected = pairs.expectation(pair)
    found = pairs.describe(pair, tmp_path)
    if update_golden:
        expected.write_text(found, encoding="utf-8")
    assert expected.exists(), f"{expected.name} is missing; --update-golden writes it"
    assert found == expected.read_text(encoding="utf-8")


def test_every_expectation_has_its_log() -> None:
    assert set(pairs.PAIRS.glob("*/*.json")) == {pairs.expectation(pair) for pair in pairs.list_pairs()}


UUID = "GPU-00000000-1111-2222-3333-444444444444"


def test_of_rows_of_several_gpus_that_nothing_distinguishes_nothing_is_assessed(tmp_path: Path) -> None:
    rows = [f"{stamp(tick + gpu / 1000)}, {gpu * 10 + tick % 3} %" for tick in range(40) for gpu in range(2 + tick % 3)]
    recording = read_text(tmp_path, "\n".join(["timestamp, utilization.gpu [%]", *rows, ""]))
    assert [device.mixed for device in recording.run.devices] == [True]
    analysis = analyze(recording)
    assert analysis.findings == ()
    known = {entry.kind for entry in analyze(read_text(tmp_path, log(3))).not_judged}
    assert {entry.kind for entry in analysis.not_judged} >= known


def test_under_mig_utilisation_is_not_assessed(tmp_path: Path) -> None:
    header = (
        "timestamp, index, uuid, utilization.gpu [%], mig.mode.current, power.draw [W], power.limit [W],"
        " clocks.sm [MHz], clocks_event_reasons.active"
    )
    more = "[N/A], Enabled, 698.00 W, 700.00 W, 1980 MHz, 0x0000000000000004"
    rows = [f"{stamp(second)}, 0, {UUID}, {more}" for second in range(300)]
    recording = read_text(tmp_path, "\n".join([header, *rows, ""]))
    assert recording.run.devices[0].mig is True
    analysis = analyze(recording)
    assert [finding.kind for finding in analysis.findings] == ["power_cap"]
    assert {entry.kind for entry in analysis.not_judged} >= {"idle_gap", "startup_idle", "tail_idle", "cpu_bound"}
    assert all(seconds == 0 for cause, seconds in analysis.gpu_time[0].seconds if cause in {"idle", "startup", "tail"})


def test_rows_that_name_a_fault_are_findings() -> None:
    recording = read(PAIRS / "nvidia_smi_query" / "repairs_are_columns.csv")
    assert [finding.severity for finding in findings_of(analyze(recording), "ecc_error")] == ["problem"]
    recording = read(PAIRS / "nvidia_smi_query" / "an_xid_between_rows_is_an_event.csv")
    assert [finding.devices for finding in findings_of(analyze(recording), "gpu_lost")] == [("gpu:0",)]


@pytest.mark.parametrize("name", ["nvidia_smi_q/a_lost_gpu.txt", "nvidia_smi_xml/a_lost_gpu_body.xml"])
def test_a_gpu_lost_in_a_log_of_whole_queries(name: str, tmp_path: Path) -> None:
    first, second = snapshots(PAIRS / name)
    shown = [(first if place < 8 else second, 5 * place) for place in range(12)]
    text = "".join(
        each.replace("09:00:05", "09:00:00").replace("09:00:00", f"09:{at // 60:02d}:{at % 60:02d}")
        for each, at in shown
    )
    analysis = analyze(read_text(tmp_path, text))
    lost = findings_of(analysis, "gpu_lost")
    assert [(each.devices, each.confidence, each.cause) for each in lost] == [(("gpu:1",), Confidence.HIGH, "lost")]
    assert seconds(analysis.run.started, lost[0].intervals[0].start) == 40


def snapshots(pair: Path) -> tuple[str, str]:
    text = pair.read_text(encoding="utf-8")
    mark = "<?xml" if pair.suffix == ".xml" else "==============NVSMI LOG"
    _, first, second = text.split(mark)
    return mark + first, mark + second


def seconds(start: int, moment: int) -> float:
    return (moment - start) / 1e6

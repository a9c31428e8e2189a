"""`nvidia-smi stats` writes a sample a line; samples of one time are one row."""

from pathlib import Path

from gpureport.importers.logs.nvidia_smi.forms.monitors.stats import Stats
from tests.importers.accounts import START, absent, column, kept, lines, rejected, seconds
from tests.importers.written_logs import read_text


def sample(metric: str, second: float, value: object, gpu: int = 0) -> str:
    """Return a line."""
    return f"{gpu}, {metric:<8}, {START + round(second * 1e6)}, {value}"


VALUES = {"procClk": 1980, "memClk": 2619, "pwrDraw": 300, "temp": 60, "gpuUtil": 90, "memUtil": 40}


def batch(start: int, gpus: int = 1) -> list[str]:
    """Return what is written in one go: five seconds of each metric, one after the other."""
    return [
        sample(metric, start + second, value, gpu)
        for gpu in range(gpus)
        for metric, value in VALUES.items()
        for second in range(5)
    ]


def test_samples_of_one_time_are_one_row(tmp_path: Path) -> None:
    """Batches a metric become rows in the order of time, in UTC."""
    recording = read_text(tmp_path, lines(*batch(0, gpus=2), *batch(5, gpus=2)))
    assert kept(recording) == 20
    assert recording.run.quality.continued == 100
    assert recording.run.timezone == "UTC"
    assert recording.run.quality.notes == ()
    assert seconds(recording, "gpu:1") == list(map(float, range(10)))
    expected = {
        "gpu_sm_clock_hertz": 1980e6,
        "gpu_memory_clock_hertz": 2619e6,
        "gpu_power_watts": 300,
        "gpu_temperature_celsius": 60,
        "gpu_utilization_ratio": 0.9,
        "gpu_memory_controller_ratio": 0.4,
    }
    assert {name: column(recording, name)[0] for name in expected} == expected


def test_metrics_have_times_of_their_own(tmp_path: Path) -> None:
    """A metric that was sampled at another time is null where it was not."""
    recording = read_text(
        tmp_path, lines(sample("pwrDraw", 0, 300), sample("pwrDraw", 0.02, 310), sample("temp", 0, 60))
    )
    assert column(recording, "gpu_power_watts") == [300, 310]
    assert column(recording, "gpu_temperature_celsius") == [60, None]


def test_what_has_no_known_unit_is_kept_as_text(tmp_path: Path) -> None:
    """Nobody says what violations are counted in."""
    recording = read_text(tmp_path, lines(sample("violPwr", 0, 12345), sample("temp", 0, 60)))
    assert recording.series.column("extra_violPwr").to_pylist() == ["12345"]


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    """Lines that are no samples, and values that cannot be, have their reasons."""
    odd = ["garbage", sample("gpuUtil", 1, 101), sample("temp", 1, "-"), sample("temp", 2, 61)[:-1]]
    recording = read_text(tmp_path, lines(sample("temp", 0, 60), *odd[:3]) + odd[3])
    assert kept(recording) == 2
    assert rejected(recording) == [
        ("cut last line", 1, 5),
        ("malformed gpuUtil", 1, 3),
        ("wrong number of cells", 1, 2),
    ]
    assert absent(recording) == [("temp", "-", 1)]


def test_what_opens_a_block() -> None:
    """A sample of a known metric does."""
    assert Stats.opens("0, procClk , 1395544840748857, 324")
    others = ("0, other , 1395544840748857, 324", "0, temp, 12, 3", "timestamp, index", "")
    assert [line for line in others if Stats.opens(line)] == []

"""Logs of the machine: what several tools say of the same seconds is the same."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.errors import GpureportError
from gpureport.testing import HOST
from tests.readers.pairs import PAIRS, check_account
from tests.support.logs import read
from tests.support.tables import read_table

CAPTURES = PAIRS / "host"
"""What the tools printed side by side for half a minute, on a machine in Berlin with two cores."""
LOCAL = 3_600_000_000
"""How far local time was ahead of UTC, in microseconds, in the captures as below."""
BEGAN = 1_795_276_759_000_000
"""When the captures began, in UTC."""
CPU, CORE, WAIT, CORES = "cpu_utilization_ratio", "cpu_busiest_core_ratio", "cpu_iowait_ratio", "process_cpu_cores"
_STARTS_IN_UTC = ("psutil", "sadf_json", "sadf_epoch", "sadf_utc", "vmstat_utc")


@dataclass(frozen=True, slots=True)
class Machine:
    """A log of a machine: its times in UTC, in microseconds, and its metrics."""

    times: npt.NDArray[np.int64]
    metrics: dict[str, npt.NDArray[np.float64]]

    def mean(self, name: str, start: int, end: int) -> float:
        return float(np.nanmean(self.metrics[name][(self.times >= start) & (self.times <= end)]))


def machine(folder: Path, path: Path, began: int, *, utc: bool) -> Machine:
    """Return a log read beside one of a GPU, which begins at the same time and dates it."""
    moments = [began + (0 if utc else LOCAL) + second * 1_000_000 for second in (0, 29)]
    stamps = [f"{datetime.fromtimestamp(moment / 1e6, UTC):%Y/%m/%d %H:%M:%S.000}" for moment in moments]
    gpu = folder / "gpu.csv"
    gpu.write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp}, 5 %\n" for stamp in stamps))
    recording = read(gpu, host=path, tz="UTC" if utc else None)
    check_account(recording)
    rows = recording.rows_of(HOST)
    times = rows.column("timestamp").to_numpy().astype("datetime64[us]").astype(np.int64) - (0 if utc else LOCAL)
    names = [name for name in rows.column_names if name not in {"device", "timestamp", "imputed"}]
    metrics = {name: rows.column(name).to_numpy().astype(np.float64) for name in names}
    return Machine(times, {name: values for name, values in metrics.items() if not np.isnan(values).all()})


def captured(folder: Path, name: str) -> Machine:
    (path,) = (each for each in CAPTURES.glob(f"captured_{name}.*") if each.suffix != ".json")
    return machine(folder, path, BEGAN, utc=name in _STARTS_IN_UTC)


NAMES = sorted(path.stem.removeprefix("captured_") for path in CAPTURES.glob("captured_*.json"))


def test_means_are_those_of_psutil(tmp_path: Path) -> None:
    reference = captured(tmp_path, "psutil")
    for name in NAMES:
        found = captured(tmp_path, name)
        low = max(reference.times[0], found.times[0]) - 600_000
        high = min(reference.times[-1], found.times[-1]) + 600_000
        allowed = 0.015 if name.startswith(("top", "vmstat")) else 0.01
        for metric in {CPU, CORE, WAIT, CORES} & found.metrics.keys():
            expected = reference.mean(metric, low, high)
            assert found.mean(metric, low, high) == pytest.approx(expected, abs=allowed), (name, metric)
        cores = found.metrics.get("cpu_logical_cores", np.array([2.0]))
        assert set(cores[~np.isnan(cores)].tolist()) == {2}, name


def test_json_of_sadf(tmp_path: Path) -> None:
    content = (CAPTURES / "captured_sadf_json.txt").read_text(encoding="utf-8")
    path, whole = tmp_path / "host.txt", captured(tmp_path, "sadf_json")
    # on one line; with a damaged object, of which there is another row each time
    path.write_text(json.dumps(json.loads(content)), encoding="utf-8")
    assert machine(tmp_path, path, BEGAN, utc=True).times.tolist() == whole.times.tolist()
    path.write_text(content.replace('"idle": ', '"idle" ', 1), encoding="utf-8")
    assert machine(tmp_path, path, BEGAN, utc=True).times.tolist() == whole.times.tolist()[1:]
    path.write_text(content.replace('"utc": 1', '"utc": 0', 1), encoding="utf-8")
    assert len(machine(tmp_path, path, BEGAN, utc=True).times) == 1
    opening = '{"sysstat": {"hosts": [{"file-date": "2026-11-21", "statistics": [\n'
    stamp = '{"timestamp": {"date": "2026-11-21", "time": "15:00:01", "utc": 1}, "queue": {"ldavg-1": 1e400}}\n'
    for text in ('{"timestamp": ' + "[" * 50_000, stamp):
        path.write_text(opening + text, encoding="utf-8")
        with pytest.raises(GpureportError):
            machine(tmp_path, path, BEGAN, utc=True)


@pytest.mark.producers
@pytest.mark.parametrize(("command", "metric"), read_table(Path(__file__).with_name("producers.tsv")))
def test_what_the_tools_of_this_machine_print_is_read(tmp_path: Path, command: str, metric: str) -> None:
    began, words = int(time.time() * 1e6), command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    environment = {**os.environ, "TZ": "Etc/GMT-1", "LC_ALL": "C"}
    printed = subprocess.run(words, env=environment, check=True, capture_output=True).stdout
    (tmp_path / "host.log").write_bytes(printed)
    found = machine(tmp_path, tmp_path / "host.log", began, utc=False)
    assert np.nanmin(found.metrics[metric]) >= 0
    assert began - 2_000_000 < found.times[0] < found.times[-1] < began + 15_000_000

"""What a pair cannot say: identities, hints that hold a command to type, and what hangs on the number of rows."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpureport
from gpureport.errors import GpureportError, SettingsError, SourceError
from tests.readers.conftest import Hold
from tests.readers.pairs import PAIRS, check_account
from tests.support.logs import (
    MAP,
    gpustat_document,
    log,
    prometheus_answer,
    read,
    read_text,
    wrapper_csv,
)

TRAINING = sorted(path for path in (PAIRS / "training").iterdir() if path.suffix != ".json")


def test_the_map_is_part_of_the_identity_and_must_be_there(tmp_path: Path) -> None:
    ids = []
    for mapping in (MAP, f"# as before\n{MAP}", MAP.replace("MiB", "B")):
        (tmp_path / "map.toml").write_text(mapping, encoding="utf-8")
        ids.append(read_text(tmp_path, wrapper_csv(2), column_map=tmp_path / "map.toml").run.id)
    assert ids[0] == ids[1] != ids[2]
    with pytest.raises(SettingsError):
        read_text(tmp_path, wrapper_csv(2), column_map=tmp_path / "absent.toml")


@pytest.mark.parametrize("name", ["rows_without_a_header_are_refused", "bare_rows_without_a_header_are_refused"])
def test_the_refusal_of_rows_without_a_header_holds_the_line_to_type(name: str) -> None:
    asked = ["timestamp", "index", "name", "utilization.gpu", "memory.used", "memory.total"]
    asked += ["temperature.gpu", "power.draw", "pstate"]
    path = PAIRS / "nvidia_smi_query" / f"{name}.csv"
    with pytest.raises(SourceError) as refused:
        gpureport.read(path)
    option = re.search(r"--columns (\S+?),? replacing", refused.value.hint)
    assert option
    suggested = option[1].split(",")
    assert (len(suggested), "column_2" in suggested) == (len(asked), True)
    filled = [asked[place] if each.startswith("column_") else each for place, each in enumerate(suggested)]
    assert filled == asked
    assert len(read(path, columns=filled).series) == 8


@pytest.mark.parametrize(
    "label", ["0: ", "[2026-03-14 09:00:00,123] INFO gpu: ", "2026-03-14T09:00:00.123456789Z stdout F ", "node-7 | "]
)
def test_what_stands_before_each_line_can_be_taken_away(label: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("".join(f"{label}{line}\n" for line in log(3).splitlines()))
    with pytest.raises(SourceError) as refused:
        gpureport.read(path)
    command = re.search(r"'(.*)'", refused.value.hint)
    assert command
    if sed := shutil.which("sed"):
        made = subprocess.run([sed, "-E", command[1], path], capture_output=True, text=True, check=True)
        assert made.stdout == log(3)


def test_the_name_of_a_field_tells_its_unit_or_the_log_is_refused(tmp_path: Path, hold: Hold) -> None:
    for text in (
        *("GPU_UTIL_RATIO 0 0.61 1", "GPU_UTIL_RATIO 0 61 100", "GPU_UTIL_RATIO 0 1 1", "GPU_UTIL 0 1 61"),
        *("GPU_UTIL 0 1 1", "GPU_UTIL 0 0.5 1", "SM_CLOCK 1980 9223372036854775794", "SM_CLOCK 1980000000"),
        *("SM_CLOCK_HERTZ 1980000000", "MEMORY_CLOCK_HERTZ 2619000000", "FB_USED 0 81559", "FB_USED 0 85000000000"),
        *("FB_FREE_BYTES 1073741824", "FB_RESERVED 512", "ENC_UTIL_RATIO 0.03", "DEC_UTIL 3"),
        *("TOTAL_ENERGY_CONSUMPTION 5000000", "GPU_ENERGY_JOULES_TOTAL 5000"),
    ):
        name, *values = text.split()
        answer = prometheus_answer(**{f"DCGM_FI_DEV_{name}": values, "DCGM_FI_DEV_GPU_TEMP": ["50"] * len(values)})
        hold(text, partial(read_text, tmp_path, answer))


def test_long_lines_and_odd_strings_of_json(tmp_path: Path) -> None:
    text = prometheus_answer(DCGM_FI_DEV_GPU_UTIL=["5"] * 60_000)
    assert len(text) > 2**20
    assert len(read_text(tmp_path, text).series) == 60_000
    for command in ("}", '\\"}', "\\\\", "{[", "b" * 300_000):
        documents = [
            gpustat_document(second, indent=indent).replace("python {", command)
            for second, indent in enumerate((None, 4, None))
        ]
        recording = read_text(tmp_path, "".join(documents))
        check_account(recording)
        assert len(recording.series) == 6, command[:9]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.text().map(str.encode), st.sampled_from(TRAINING).map(Path.read_bytes), st.binary()))
def test_any_training_log_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "gpu.csv").write_text(log(20), encoding="utf-8")
    path = tmp_path / "metrics.csv"
    path.write_bytes(content)
    try:
        recording = read(tmp_path / "gpu.csv", training=path, tz="UTC")
    except GpureportError:
        return
    check_account(recording)
    assert len(recording.training)


def test_utc_beside_local_time_is_read_with_its_zone(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(10), encoding="utf-8")
    first = 1_773_478_800 - 5 * 3600 - 1800
    host = tmp_path / "host.csv"
    host.write_text("unix,cpu_percent\n" + "".join(f"{first + second},50\n" for second in range(10)))
    for as_one_run in (False, True):
        with pytest.raises(SourceError) as refused:
            gpureport.read(tmp_path / "gpu.csv", host=host, as_one_run=as_one_run)
        assert refused.value.code == "times_not_comparable"
        run = read(tmp_path / "gpu.csv", host=host, tz="Asia/Kolkata", as_one_run=as_one_run).run
        assert (run.timezone, run.started) == ("Asia/Kolkata", first * 1_000_000)
    with pytest.raises(SourceError):
        gpureport.read(tmp_path / "gpu.csv", host=host, tz="Europe/Berlin")

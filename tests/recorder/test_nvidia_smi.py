"""What the installed nvidia-smi is asked to record: what its driver knows, under the names that it knows."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.gpu_query import COUNTER_FIELDS, GPU_FIELDS
from gpureport.recorder.nvidia_smi import build_dmon_command, build_query_command, choose_fields, find_nvidia_smi


def test_every_field_of_a_recent_driver_is_logged(stand_in_driver: Path) -> None:
    """A driver that knows all fields is asked for all."""
    assert choose_fields(str(stand_in_driver)) == (*GPU_FIELDS, *COUNTER_FIELDS)


def test_unknown_fields_are_left_out_and_old_names_used(stand_in_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver before R530 has the old name of the clock's reasons, and no counters."""
    unknown = ("clocks_event_reasons.active", "temperature.gpu.tlimit", *COUNTER_FIELDS)
    monkeypatch.setenv("STAND_IN_UNKNOWN", ",".join(unknown))
    fields = choose_fields(str(stand_in_driver))
    assert set(GPU_FIELDS) - set(fields) == {"clocks_event_reasons.active", "temperature.gpu.tlimit"}
    assert set(fields) - set(GPU_FIELDS) == {"clocks_throttle_reasons.active"}


def test_refused_fields_are_left_out(stand_in_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the help lists and the query refuses is left out, one field after the other."""
    monkeypatch.setenv("STAND_IN_REFUSED", "mig.mode.current,temperature.memory")
    fields = choose_fields(str(stand_in_driver))
    assert {"mig.mode.current", "temperature.memory"}.isdisjoint(fields)
    assert len(fields) == len(GPU_FIELDS) + len(COUNTER_FIELDS) - 2


def test_driver_without_gpus_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nvidia-smi says instead of rows is what the person reads."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="No devices were found; check the driver"):
        choose_fields(find_nvidia_smi())


@pytest.mark.parametrize(("seconds", "loop"), [(1.0, ["-l", "1"]), (0.1, ["-lms", "100"]), (2.5, ["-lms", "2500"])])
def test_interval_is_whole_seconds_or_milliseconds(seconds: float, loop: list[str]) -> None:
    """The driver takes whole seconds by one option and milliseconds by another."""
    assert build_query_command("nvidia-smi", ("timestamp", "index"), seconds)[-2:] == loop


@pytest.mark.parametrize(("setting", "has_gpm"), [("", True), ("no-gpm", False)])
def test_gpm_is_logged_where_the_driver_has_it(
    stand_in_driver: Path, monkeypatch: pytest.MonkeyPatch, setting: str, *, has_gpm: bool
) -> None:
    """Older drivers refuse --gpm-metrics; their dmon still counts PCIe traffic."""
    monkeypatch.setenv("STAND_IN_DMON", setting)
    words = build_dmon_command(str(stand_in_driver), 0.1)
    assert words is not None
    assert ("--gpm-metrics" in words) == has_gpm
    assert words[1:8] == ["dmon", "-s", "pt", "-o", "DT", "-d", "1"]

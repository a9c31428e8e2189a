"""Headings that people and scripts write, and the one table that says what they mean."""

import pytest

from gpureport.importers.values.column_names import (
    GPU_COLUMNS,
    HOST_COLUMNS,
    ColumnName,
    is_time_heading,
    recognise_column,
)
from gpureport.importers.values.heading_words import heading_words


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("GPU Mem_Used(MB)", "gpu memory used mb"),
        ("gpuMemoryUsed [MiB]", "gpu memory used mib"),
        ("power_mW", "power mw"),
        ("GPUTemp °C", "gpu temperature c"),
        ("vram.used%", "gpu memory used percent"),
        ("load1m", "load 1 m"),
        ("x" * 101, ""),
    ],
)
def test_words_of_a_heading(heading: str, words: str) -> None:
    """Signs, capitals and spellings make no difference."""
    assert " ".join(heading_words(heading)) == words


@pytest.mark.parametrize(
    ("heading", "target", "unit"),
    [
        ("mem_used_MB", "gpu_memory_used_bytes", "MiB"),
        ("Used VRAM (GiB)", "gpu_memory_used_bytes", "GiB"),
        ("power_draw", "gpu_power_watts", ""),
        ("gpu_idx", "index", ""),
        ("gpu_power_limit_mW", "gpu_power_limit_requested_watts", "mW"),
    ],
)
def test_columns_of_gpus(heading: str, target: str, unit: str) -> None:
    """The words may stand in any order, and a unit that fits is allowed."""
    found = recognise_column(heading, GPU_COLUMNS)
    assert found is not None
    assert (found.target, found.unit) == (target, unit)


@pytest.mark.parametrize(
    "heading", ["util", "memory", "power_mib", "gpu_mb", "gpu0_power", "ram_used_mb", "gpu power loss"]
)
def test_a_word_too_few_or_too_many_leaves_a_column_open(heading: str) -> None:
    """Nothing is guessed: all words must be known, and the unit must be one of the metric."""
    assert recognise_column(heading, GPU_COLUMNS) is None


@pytest.mark.parametrize(
    "heading", ["cpu_system", "cpu_user", "memory_used", "load_average", "disk_read_mb", "vram_used_mb"]
)
def test_columns_of_a_machine_that_are_left_open(heading: str) -> None:
    """Kernel time is no load, sizes need a unit, a load average its minute, and a rate its second."""
    assert recognise_column(heading, HOST_COLUMNS) is None


def test_a_machine_may_be_named_first() -> None:
    """`system_cpu` is the whole CPU; `cpu_system` would be the time in the kernel."""
    assert recognise_column("system_cpu_percent", HOST_COLUMNS) == ColumnName("cpu_utilization_ratio", "%", "percent")


@pytest.mark.parametrize(("heading", "named"), [("Unix Time (ms)", True), ("TimeStamp", True), ("time to load", False)])
def test_times(heading: str, *, named: bool) -> None:
    """A time and nothing else."""
    assert is_time_heading(heading) is named

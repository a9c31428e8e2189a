"""The GPU table."""

import tomllib
from pathlib import Path

import pytest

from gpureport import gpus


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4"),
        ("NVIDIA A100 80GB PCIe", "A100 80 GB PCIe"),
        ("NVIDIA A100-PCIE-40GB", "GA100"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("Tesla V100-PCIE-32GB", "V100 PCIe"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "Hopper"),
        ("NVIDIA H200", "H200"),
        ("nvidia geforce rtx 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_names_are_found_in_any_spelling(name: str, model: str) -> None:
    """A name leads to its own model, not to a relative with other limits."""
    known = gpus.find_gpu(name)
    assert known is not None
    assert known.model == model


@pytest.mark.parametrize("name", [None, "", "Orin", "AMD Instinct MI300X"])
def test_unknown_gpus_are_no_error(name: str | None) -> None:
    """What is not in the table is None."""
    assert gpus.find_gpu(name) is None


@pytest.mark.parametrize(
    ("name", "window"),
    [("Tesla T4", "instant"), ("NVIDIA A100-SXM4-80GB", "instant"), ("NVIDIA A30", "instant"), ("NVIDIA L4", "1 s")],
)
def test_power_is_averaged_on_ampere_and_newer_except_ga100(name: str, window: str) -> None:
    """The architecture tells what a power reading covers."""
    known = gpus.find_gpu(name)
    assert known is not None
    assert known.power_window == window


def test_every_cell_has_a_source() -> None:
    """No value without the words that say where it comes from."""
    content = tomllib.loads((Path(gpus.__file__).with_name("gpus.toml")).read_text(encoding="utf-8"))
    for row in content["gpu"]:
        for key, cell in row.items():
            assert key in {"model", "names", "not"} or cell[1] in content["sources"], (row["model"], key)


def test_no_source_is_a_memory() -> None:
    """A source is something that can be opened: a kind of dump, or an address."""
    content = tomllib.loads((Path(gpus.__file__).with_name("gpus.toml")).read_text(encoding="utf-8"))
    dumps = {"dump", "dump_margin", "mock", "cc", "dcgm", "refresh", "idle"}
    assert [name for name, words in content["sources"].items() if name not in dumps and "http" not in words] == []
    assert [name for name, words in content["sources"].items() if "quoted" in words] == []


@pytest.mark.parametrize(
    "name",
    ["NVIDIA A40", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 4090", "NVIDIA H20", "NVIDIA GH200 480GB"],
)
def test_gpus_of_which_no_dump_names_the_limits_are_in_the_table(name: str) -> None:
    """Their memory and how fast it is are known, each with its source."""
    known = gpus.find_gpu(name)
    assert known is not None
    assert known.memory_total_bytes
    assert known.memory_bandwidth_bytes_per_second


def test_every_source_is_used() -> None:
    """A source nobody cites is stale."""
    content = tomllib.loads((Path(gpus.__file__).with_name("gpus.toml")).read_text(encoding="utf-8"))
    cited = {cell[1] for row in content["gpu"] for key, cell in row.items() if key not in {"model", "names", "not"}}
    assert cited == set(content["sources"])


def test_temperatures_rise_from_operating_to_shutdown() -> None:
    """Limits of one board are in order."""
    for known in gpus.load_gpus():
        cells = (
            known.temperature_max_operating_celsius,
            known.temperature_slowdown_celsius,
            known.temperature_shutdown_celsius,
        )
        values = [cell.value for cell in cells if cell]
        assert values == sorted(values)

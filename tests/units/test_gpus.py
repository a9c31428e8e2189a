"""The GPU table: every value has a source that can be opened, and a name leads to its own model."""

import tomllib
from pathlib import Path

import gpureport
from gpureport.metrics import find_gpu

TABLE = tomllib.loads((Path(gpureport.__file__).parent / "gpus.toml").read_text(encoding="utf-8"))
NAMES = {
    "NVIDIA A100-SXM4-80GB": "A100 SXM4",
    "NVIDIA A100 80GB PCIe": "A100 80 GB PCIe",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40 GB",
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100 SXM2",
    "Tesla V100-PCIE-32GB": "V100 PCIe",
    "NVIDIA A10": "A10",
    "NVIDIA A10G": "A10G",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "Hopper",
    "NVIDIA H200": "H200",
    "nvidia geforce rtx 3090": "RTX 3090",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "": None,
    "Orin": None,
    "AMD Instinct MI300X": None,
}


def test_a_name_leads_to_its_own_model() -> None:
    found = {name: find_gpu(name) for name in NAMES}
    assert {name: known and known.model for name, known in found.items()} == NAMES
    windows = {"Tesla T4": "instant", "NVIDIA A100-SXM4-80GB": "instant", "NVIDIA A30": "instant", "NVIDIA L4": "1 s"}
    assert {name: (known := find_gpu(name)) and known.power_window for name in windows} == windows
    for name in ("NVIDIA A40", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 4090", "NVIDIA H20", "NVIDIA GH200 480GB"):
        known = find_gpu(name)
        assert known is not None, name
        assert known.memory_total_bytes, name
        assert known.memory_bandwidth_bytes_per_second, name


def test_every_cell_has_a_source_and_every_source_is_used() -> None:
    plain = {"model", "names", "not"}
    cited = {(row["model"], key): cell[1] for row in TABLE["gpu"] for key, cell in row.items() if key not in plain}
    assert {cell: source for cell, source in cited.items() if source not in TABLE["sources"]} == {}
    assert set(cited.values()) == set(TABLE["sources"])


def test_no_source_is_a_memory() -> None:
    dumps = {"dump", "dump_margin", "mock", "cc", "dcgm", "refresh", "idle"}
    sources = TABLE["sources"].items()
    assert [name for name, words in sources if name not in dumps and "http" not in words] == []
    assert [name for name, words in sources if "quoted" in words] == []

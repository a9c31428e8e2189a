"""DCGM's fields by every name they go by: what each is in the series, and the unit it counts in.

The names of a field: its symbol before and since DCGM 4.5, its number, and the short tag `dcgmi dmon` heads its column
with (NVIDIA/DCGM dcgmlib/dcgm_fields.h and dcgmlib/src/dcgm_fields.cpp).

dcgm-exporter 4.9.0 renames the 23 fields of its default lists that DCGM 4.7 deprecates; eleven of them change their
unit with the name: clocks from MHz to hertz, energy from mJ to J, utilisations from per cent to ratios, memory from MiB
to bytes, and NVLink throughput from MB/s to bytes a second (release notes of dcgm-exporter 4.9.0; numbers 1600 to 1648
in go-dcgm's base unit fields). So the name tells the unit, with these exceptions:

- `DCGM_FI_DEV_GPU_UTIL_RATIO` is field 203 in per cent in DCGM 4.5 and 4.6, and field 1613 as a ratio since 4.7.
- A relabelling that keeps the old names for old dashboards leaves the new units under them.

`determine_unit` looks at the values in these cases. Three kinds of fields are kept as they are, not read as metrics:

- NVLink throughput: counters of lanes in old exporters, MB/s in others (NVIDIA/dcgm-exporter#472);
- violation times: microseconds in DCGM's header, nanoseconds in the exporter's list;
- PCIe throughput over NVML: a reading of 20 ms in KB.
"""

from collections.abc import Iterable

from gpureport.importers.account import Account
from gpureport.importers.columns import MASK, extra_name
from gpureport.importers.headings import absence_word, convert_to_base, describe_absence, parse_number
from gpureport.importers.tools import Meaning, Record
from gpureport.metrics import BY_NAME

EITHER = "DCGM_FI_DEV_GPU_UTIL_RATIO"
"""The name whose unit depends on the version of DCGM."""
UNTOLD = (
    "DCGM_FI_DEV_GPU_UTIL_RATIO counts in per cent in DCGM before 4.7 and as a ratio since: kept as it is in a table."
)
_TABLE = {
    "gpu_sm_clock_hertz": "MHz: DEV_SM_CLOCK 100 SMCLK; Hz: DEV_SM_CLOCK_HERTZ 1603",
    "gpu_memory_clock_hertz": "MHz: DEV_MEM_CLOCK 101 MMCLK; Hz: DEV_MEMORY_CLOCK_HERTZ 1604",
    "gpu_video_clock_hertz": "MHz: DEV_VIDEO_CLOCK 102; Hz: DEV_VIDEO_CLOCK_HERTZ 1605",
    "gpu_sm_clock_max_hertz": "MHz: DEV_MAX_SM_CLOCK 113 SMMAX; Hz: DEV_SM_MAX_CLOCK_HERTZ 1608",
    "gpu_memory_clock_max_hertz": "MHz: DEV_MAX_MEM_CLOCK 114 MMMAX; Hz: DEV_MEMORY_MAX_CLOCK_HERTZ 1609",
    "gpu_temperature_celsius": "C: DEV_GPU_TEMP_CELSIUS DEV_GPU_TEMP 150 TMPTR",
    "gpu_memory_temperature_celsius": "C: DEV_MEMORY_TEMP_CELSIUS DEV_MEMORY_TEMP 140 MMTMP",
    "gpu_temperature_margin_celsius": "C: DEV_GPU_TEMP_MARGIN_CELSIUS 153 GTLIMIT",
    "gpu_power_watts": "W: DEV_BOARD_POWER_WATTS DEV_POWER_USAGE 155 POWER",
    "gpu_power_instant_watts": "W: DEV_BOARD_POWER_RAW_WATTS DEV_POWER_USAGE_INSTANT 157 POWINST",
    "gpu_power_limit_requested_watts": "W: DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS DEV_POWER_MGMT_LIMIT 160 PMLMT",
    "gpu_power_limit_min_watts": "W: DEV_BOARD_POWER_LIMIT_MIN_WATTS DEV_POWER_MGMT_LIMIT_MIN 161 PMMIN",
    "gpu_power_limit_max_watts": "W: DEV_BOARD_POWER_LIMIT_MAX_WATTS DEV_POWER_MGMT_LIMIT_MAX 162 PMMAX",
    "gpu_power_limit_default_watts": "W: DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS DEV_POWER_MGMT_LIMIT_DEF 163 PMDEF",
    "gpu_power_limit_watts": "W: DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS DEV_ENFORCED_POWER_LIMIT 164 EPLMT",
    "gpu_energy_joules_total": "mJ: DEV_TOTAL_ENERGY_CONSUMPTION 156 TOTEC; J: DEV_GPU_ENERGY_JOULES_TOTAL 1611",
    "gpu_performance_state": ": DEV_GPU_PSTATE DEV_PSTATE 190 PSTAT",
    "gpu_fan_ratio": "%: DEV_FAN_SPEED 191 FANSP; 1: DEV_FAN_SPEED_RATIO 1612",
    "gpu_utilization_ratio": "%: DEV_GPU_UTIL 203 GPUTL; 1: DEV_GPU_UTIL_RATIO 1613",
    "gpu_memory_controller_ratio": "%: DEV_MEM_COPY_UTIL 204 MCUTL; 1: DEV_MEMORY_UTIL_RATIO 1614",
    "gpu_encoder_ratio": "%: DEV_ENC_UTIL 206; 1: DEV_ENC_UTIL_RATIO 1615",
    "gpu_decoder_ratio": "%: DEV_DEC_UTIL 207; 1: DEV_DEC_UTIL_RATIO 1616",
    "gpu_memory_total_bytes": "MiB: DEV_FB_TOTAL 250 FBTTL; B: DEV_FB_CAPACITY_BYTES 1625",
    "gpu_memory_free_bytes": "MiB: DEV_FB_FREE 251 FBFRE; B: DEV_FB_FREE_BYTES 1626",
    "gpu_memory_used_bytes": "MiB: DEV_FB_USED 252 FBUSD; B: DEV_FB_USED_BYTES 1627",
    "gpu_memory_reserved_bytes": "MiB: DEV_FB_RESERVED 253; B: DEV_FB_RESERVED_BYTES 1628",
    "pcie_link_generation_max": ": DEV_PCIE_MAX_LINK_GEN 235 PCIMG",
    "pcie_link_width_max": ": DEV_PCIE_MAX_LINK_WIDTH 236 PCIMW",
    "pcie_link_generation": ": DEV_PCIE_LINK_GEN 237 PCILG",
    "pcie_link_width": ": DEV_PCIE_LINK_WIDTH 238 PCILW",
    "gpu_xid_code": ": DEV_XID_ERROR DEV_XID_ERRORS 230 XIDER",
    "gpu_ecc_corrected_total": ": DEV_ECC_SBE_VOL_TOTAL 310 ESVTL",
    "gpu_ecc_uncorrected_total": ": DEV_ECC_DBE_VOL_TOTAL 311 EDVTL",
    "gpu_retired_pages_single_bit_total": ": DEV_RETIRED_SBE 390",
    "gpu_retired_pages_double_bit_total": ": DEV_RETIRED_DBE 391",
    "gpu_remapped_rows_uncorrectable_total": ": DEV_UNCORRECTABLE_REMAPPED_ROWS 393",
    "gpu_remapped_rows_correctable_total": ": DEV_CORRECTABLE_REMAPPED_ROWS 394",
    "gpu_graphics_engine_active_ratio": "1: PROF_GR_ENGINE_UTIL_RATIO PROF_GR_ENGINE_ACTIVE 1001 GRACT",
    "gpu_sm_active_ratio": "1: PROF_SM_UTIL_RATIO PROF_SM_ACTIVE 1002 SMACT",
    "gpu_sm_occupancy_ratio": "1: PROF_SM_OCCUPANCY_RATIO PROF_SM_OCCUPANCY 1003 SMOCC",
    "gpu_tensor_active_ratio": "1: PROF_TENSOR_UTIL_RATIO PROF_PIPE_TENSOR_ACTIVE 1004 TENSO",
    "gpu_dram_active_ratio": "1: PROF_DRAM_UTIL_RATIO PROF_DRAM_ACTIVE 1005 DRAMA",
    "pcie_transmit_bytes_per_second": "B/s: PROF_PCIE_TX_BYTES 1009 PCITX",
    "pcie_receive_bytes_per_second": "B/s: PROF_PCIE_RX_BYTES 1010 PCIRX",
    "nvlink_transmit_bytes_per_second": "B/s: PROF_NVLINK_TX_BYTES 1011 NVLTX",
    "nvlink_receive_bytes_per_second": "B/s: PROF_NVLINK_RX_BYTES 1012 NVLRX",
    "clock_event_sw_power_cap_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS 1420",
    "clock_event_sync_boost_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS 1421",
    "clock_event_sw_thermal_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS 1422",
    "clock_event_hw_thermal_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS 1423",
    "clock_event_hw_power_brake_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS 1424",
    MASK: ": DEV_CLOCKS_EVENT_REASONS DEV_CLOCK_THROTTLE_REASONS 112 DVCCTR",
}
"""By metric: unit, and the names of the field that counts in it: symbols without `DCGM_FI_`, its number, the tag."""
_FIELDS: dict[str, Meaning] = {}
for _metric, _text in _TABLE.items():
    for _unit, _, _names in (each.partition(": ") for each in _text.split("; ")):
        for _name in _names.split():
            _symbols = (f"DCGM_FI_{_name}", f"FI_{_name}") if "_" in _name else (_name, f"DCGM_{_name}")
            _FIELDS |= dict.fromkeys(_symbols, (_metric, _unit))
_NEWER_UNITS = {"MHz": ("Hz", 1e5), "MiB": ("B", 2.0**22)}
"""The unit a relabelled field may have under its old name: no clock is 100 GHz and no GPU has 4 TiB."""
_BLANKS = ((2**63 - 1024, 2**63), (2**47, 2**47 + 16), (2**31 - 16, 2**31))
"""What DCGM writes where it has no value: numbers from these on are blank, not found, not supported, not permitted
(dcgm_structs.h, DCGM_INT64_BLANK, DCGM_FP64_BLANK, DCGM_INT32_BLANK). As floats those of 64 bits are 2**63."""


def find_field(name: str) -> Meaning | None:
    """Return the metric and the unit of a field, with or without `DCGM_`; None for one that is no metric."""
    return _FIELDS.get(name)


def _is_blank(found: float) -> bool:
    return any(low <= found <= high for low, high in _BLANKS)


def read_field(name: str, cell: str, record: Record, account: Account, unit: str | None = None) -> None:
    """Take a cell of a field into the record of its row; `unit` counts instead of the one that its name stands for."""
    known, found, none = find_field(name), parse_number(cell), absence_word(cell)
    if none is None and (known is None or (name == EITHER and unit is None)):
        record[extra_name(name)] = cell
        return
    value: float | int | None = None
    if found is not None and _is_blank(found):
        none = "blank"
    elif known and known[0] == MASK and found is not None:
        value = int(found) if found.is_integer() and 0 <= found < 2**64 else None
    elif known and found is not None:
        value = convert_to_base(found, known[1] if unit is None else unit, known[0])
    if known and value is not None:
        record[known[0]] = value
    else:
        account.absent[name, none or describe_absence(cell)] += 1


def determine_unit(name: str, known: Meaning, values: Iterable[float]) -> str | None:
    """Return the unit of a field, judged by its name and all its values; None when they leave it open."""
    numbers = [each for each in values if not _is_blank(each)]
    most, parts = max(numbers, default=0.0), any(0 < each < 1 for each in numbers)
    if name == EITHER:
        return "%" if most > 1 else "1" if parts else None
    if known[1] == "%" and not BY_NAME[known[0]].may_exceed_one:
        return "1" if most <= 1 and parts else "%"
    newer, limit = _NEWER_UNITS.get(known[1], (known[1], most))
    return newer if most > limit else known[1]

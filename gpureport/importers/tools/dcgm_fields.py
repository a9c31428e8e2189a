"""DCGM's fields by every name (dcgm_fields.h, dcgm_fields.cpp), and the rows that their readings make.

dcgm-exporter 4.9.0 renames fields and their units, so the name tells the unit, but for `DCGM_FI_DEV_GPU_UTIL_RATIO`,
per cent in DCGM 4.5 and 4.6. Fields whose unit differs between NVIDIA's own sources are text.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from gpureport.errors import SourceError
from gpureport.importers import extraction, tools
from gpureport.importers.account import Account
from gpureport.importers.columns import MASK, TIME
from gpureport.importers.headings import absence_word, parse_number
from gpureport.parsing import MOST

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
"""By metric: unit and names of the field: symbols without `DCGM_FI_`, its number, the tag."""
FIELDS: dict[str, tools.Meaning] = {}
for _metric, _text in _TABLE.items():
    for _unit, _, _names in (each.partition(": ") for each in _text.split("; ")):
        for _name in _names.split():
            _symbols = (f"DCGM_FI_{_name}", f"FI_{_name}") if "_" in _name else (_name, f"DCGM_{_name}")
            FIELDS |= dict.fromkeys(_symbols, (_metric, _unit))
_WHOLE = {name for name, (metric, unit) in FIELDS.items() if unit == "%" and metric != "gpu_fan_ratio"}
_LIMITS = {"MHz": 1e5, "MiB": 2.0**22}
_BLANKS = ((2**63 - 1024, 2**63), (2**47, 2**47 + 16), (2**31 - 16, 2**31))
"""What DCGM writes where it has no value (dcgm_structs.h, DCGM_INT64_BLANK); as floats those of 64 bits are 2**63."""
_MOST = 5_000_000
Reading = tuple[int, int, tools.Stamp, tools.Record, Iterable[tuple[str, str]]]
"""Line, page, time, GPU and fields; others of the moment may come later on the page, which is held in memory."""


def field_form(read: Callable[..., Iterator[Reading]]) -> extraction.Form:
    return tools.form(lambda lines, first, account: build_rows(read(lines, first, account), account))


def build_rows(readings: Iterable[Reading], account: Account, *, raw: bool = False) -> Iterator[tools.Record]:
    """Yield a row per GPU and moment, page by page; `raw` readings are as DCGM gave them."""
    for _, page in groupby(readings, itemgetter(1)):
        rows: dict[tuple[object, object], tuple[tools.Record, dict[str, str]]] = {}
        for count, (number, _, time, gpu, fields) in enumerate(page):
            key = gpu.get("uuid") or gpu.get("index"), time
            row, cells = rows.setdefault(key, ({"line": number, TIME: time, **gpu}, {}))
            account.continued += row["line"] != number
            for name, cell in fields:
                if cells.setdefault(name, cell) != cell:
                    account.note(f"{name} has several values for one GPU and time; the first is kept.")
            if count > _MOST:
                what = f"more than {_MOST:,} readings, one per line, which are held in memory"
                raise SourceError("the log", what, "split it by time", code="too_many_readings")
        for row, cells in sorted(rows.values(), key=lambda found: (found[0][TIME] or (0,), found[0]["line"])):
            for name, cell in cells.items():
                _take_field(row, account, name, cell, raw=raw)
            yield row


def _take_field(row: tools.Record, account: Account, name: str, cell: str, *, raw: bool) -> None:
    metric, unit = FIELDS.get(name, ("", ""))
    text, _, own = cell.partition(" ")
    found = parse_number(text)
    if found is not None and found >= _BLANKS[-1][0] and any(low <= found <= high for low, high in _BLANKS):
        account.absent[name, "blank"] += 1
    elif not metric and (word := absence_word(cell)):
        account.absent[name, word] += 1
    elif found is None or own or not metric or metric == MASK:
        tools.take_cells(row, account, [(name, cell)], {name: (metric, unit)} if metric else {})
    else:
        most = 1.0 if name.endswith("GPU_UTIL_RATIO") else _LIMITS.get(unit, MOST)
        if found > most or (raw and 0 < found < 1 and name in _WHOLE):
            cause = "it was relabelled, or DCGM is older than 4.7"
            what = f"{name} does not count in the unit of its name ({cell}): {cause}"
            hint = "give it the name of its unit: DCGM_FI_DEV_GPU_UTIL is per cent, DCGM_FI_DEV_GPU_UTIL_RATIO a ratio"
            raise SourceError("the log", what, hint, code="unit_of_another_version")
        tools.take_cells(row, account, [(name, found)], {name: (metric, unit)})

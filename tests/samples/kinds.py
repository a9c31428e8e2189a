"""Small sample logs for the kinds of findings that no other sample is named after, and all samples together."""

from dataclasses import replace

from tests.samples import scenarios
from tests.samples.hardware import A100, L4, Cooling
from tests.samples.scenarios import LINKED, Faults, Machine, Memory, Planted, Scenario
from tests.samples.workload import Job

_ANY = ("info", "warning", "problem")
_A100_SLOT = Cooling(inlet_celsius=23.0, kelvin_per_watt=0.098)
_TWO = (_A100_SLOT, Cooling(inlet_celsius=23.5, kelvin_per_watt=0.101))
_STEADY = Job(steps=700, first=12.0, compute_seconds=0.40, load_seconds=0.22)
_BEGUN = Planted(kind="startup_idle", severities=_ANY)
_HOST = Machine(
    cores=32,
    work_seconds=0.9,
    idle_percent=1.5,
    ram_total_mib=257_480,
    ram_job_mib=41_300,
    iowait_percent=0.4,
)
_PLAIN = Scenario(
    folder="",
    seed=0,
    started="2026-07-01 09:00:00.250",
    interval=5,
    model=A100,
    coolings=(_A100_SLOT,),
    job=_STEADY,
    intensity=0.82,
    controller=0.6,
    memory=Memory(context_mib=512, model_mib=21_418, peak_mib=62_018, growth_seconds=20.0),
    log="nvidia-smi.csv.gz",
)
"""A job in which nothing goes wrong; each of the following changes what its name says."""

LOCKED = replace(
    _PLAIN,
    folder="clocks_locked",
    seed=101,
    model=replace(A100, clock_mhz=1095, highest_mhz=1410),
    planted=(Planted(kind="clocks_locked", gpu=0, severities=_ANY),),
)
STARVED = replace(
    _PLAIN,
    folder="cpu_bound",
    seed=102,
    job=Job(steps=420, first=15.0, compute_seconds=0.41, load_seconds=0.95, load_spread=0.3),
    machine=replace(_HOST, cores=16, work_seconds=14.0),
    planted=(Planted(kind="cpu_bound", gpu=0), _BEGUN),
)
CORRUPTED = replace(
    _PLAIN,
    folder="ecc_error",
    seed=103,
    fields=LINKED,
    faults=Faults(errors=(0, 160.0)),
    planted=(Planted(kind="ecc_error", gpu=0, severities=("problem",)),),
)
SINGLE_PRECISION = replace(
    _PLAIN,
    folder="full_precision",
    seed=104,
    options=("--param", "precision=fp32"),
    planted=(Planted(kind="full_precision", gpu=0, severities=("info",)),),
)
FALLEN = replace(
    _PLAIN,
    folder="gpu_lost",
    seed=105,
    coolings=_TWO,
    faults=Faults(lost=(1, 200.0)),
    planted=(Planted(kind="gpu_lost", gpu=1, severities=("problem",)),),
)
BRAKED = replace(
    _PLAIN,
    folder="hw_throttle",
    seed=106,
    coolings=(replace(_A100_SLOT, braked=(120.0, 210.0)),),
    planted=(Planted(kind="hw_throttle", gpu=0, severities=("problem",)),),
)
INTERRUPTED = replace(
    _PLAIN,
    folder="idle_gap",
    seed=107,
    job=replace(_STEADY, stall_steps=300, stall_seconds=45.0),
    planted=(Planted(kind="idle_gap", gpu=0, severities=_ANY),),
)
SILENT = replace(
    _PLAIN,
    folder="log_gap",
    seed=108,
    faults=Faults(silent=(140.0, 200.0)),
    planted=(Planted(kind="log_gap", severities=_ANY),),
)
UNEXPLAINED = replace(
    _PLAIN,
    folder="low_util_cause_unknown",
    seed=109,
    job=replace(_STEADY, compute_seconds=0.36, launch_seconds=0.52, steps=500),
    intensity=0.62,
    planted=(Planted(kind="low_util_cause_unknown", gpu=0, severities=_ANY),),
)
ROOMY = replace(
    _PLAIN,
    folder="mem_headroom",
    seed=110,
    memory=Memory(context_mib=512, model_mib=9_418, peak_mib=28_018, growth_seconds=20.0),
    planted=(Planted(kind="mem_headroom", gpu=0, severities=("info",)),),
)
OVERFITTING = replace(
    _PLAIN,
    folder="no_progress",
    seed=111,
    learns_until=350,
    planted=(Planted(kind="no_progress", severities=("info",)),),
)
OVERSIZED = replace(
    _PLAIN,
    folder="oversized_gpu",
    seed=112,
    interval=10,
    job=Job(steps=700, first=12.0, compute_seconds=0.18, load_seconds=0.1, launch_seconds=0.82),
    intensity=0.5,
    memory=Memory(context_mib=512, model_mib=4_418, peak_mib=9_618, growth_seconds=20.0),
    machine=_HOST,
    planted=(Planted(kind="oversized_gpu", gpu=0, severities=("info",)), Planted(kind="underutilised", gpu=0)),
)
NARROW = replace(
    _PLAIN,
    folder="pcie_degraded",
    seed=113,
    fields=LINKED,
    faults=Faults(link=0),
    planted=(Planted(kind="pcie_degraded", gpu=0),),
)
CAPPED = replace(
    _PLAIN,
    folder="power_cap",
    seed=114,
    model=L4,
    coolings=(Cooling(inlet_celsius=24.0, kelvin_per_watt=0.62),),
    intensity=1.2,
    memory=Memory(context_mib=398, model_mib=5_212, peak_mib=17_310, growth_seconds=9.0),
    planted=(Planted(kind="power_cap", gpu=0, severities=("info",)),),
)
LOWERED = replace(
    _PLAIN,
    folder="power_limited",
    seed=115,
    model=replace(A100, limit_watts=240.0, default_watts=400.0),
    intensity=1.6,
    planted=(Planted(kind="power_limited", gpu=0), Planted(kind="power_cap", gpu=0, severities=_ANY)),
)
LATE = replace(
    _PLAIN,
    folder="startup_idle",
    seed=116,
    job=replace(_STEADY, first=95.0),
    planted=(Planted(kind="startup_idle", severities=("warning",)),),
)
LINGERING = replace(
    _PLAIN,
    folder="tail_idle",
    seed=117,
    kept_seconds=85.0,
    planted=(Planted(kind="tail_idle", severities=_ANY),),
)
COPYING = replace(
    _PLAIN,
    folder="transfer_bound",
    seed=118,
    job=replace(_STEADY, steps=300, compute_seconds=0.36, launch_seconds=0.55),
    intensity=0.6,
    copied_bytes_per_second=23.5e9,
    log="dcgmi-dmon.txt",
    planted=(Planted(kind="transfer_bound", gpu=0), _BEGUN),
)
FEW_WORKERS = replace(
    _PLAIN,
    folder="workers_headroom",
    seed=119,
    job=Job(steps=420, first=15.0, compute_seconds=0.41, load_seconds=0.9, load_spread=0.3),
    machine=replace(_HOST, cores=8, work_seconds=6.2),
    planted=(Planted(kind="workers_headroom", severities=_ANY), Planted(kind="cpu_bound", gpu=0), _BEGUN),
)

SCENARIOS = (
    *scenarios.SCENARIOS,
    *(LOCKED, STARVED, CORRUPTED, SINGLE_PRECISION, FALLEN, BRAKED, INTERRUPTED, SILENT, UNEXPLAINED, ROOMY),
    *(OVERFITTING, OVERSIZED, NARROW, CAPPED, LOWERED, LATE, LINGERING, COPYING, FEW_WORKERS),
)
"""Every sample log, each in a folder of its own."""

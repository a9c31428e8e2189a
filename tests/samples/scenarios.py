"""The sample logs: what each one plays through, and what a reader must find in it."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.samples.hardware import A10G, A100, H100, L4, Cooling, Model
from tests.samples.workload import Job

FULL = (
    "timestamp",
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "pstate",
    "utilization.gpu",
    "utilization.memory",
    "memory.total",
    "memory.reserved",
    "memory.used",
    "temperature.gpu",
    "power.draw",
    "enforced.power.limit",
    "power.default_limit",
    "clocks.current.sm",
    "clocks.max.sm",
    "clocks_event_reasons.active",
)
"""The query fields that answer every question an nvidia-smi log can answer."""

LEAN = tuple(name for name in FULL if name not in {"uuid", "pci.bus_id", "driver_version", "pstate"})
"""The same without what only identifies the card; most samples keep to these, for the size of the repository."""

LINKED = (
    *LEAN,
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "ecc.errors.uncorrected.volatile.total",
)
"""With the link and the errors of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much memory the job holds."""

    context_mib: int  # the context alone
    model_mib: int  # with weights and optimizer, before the first step
    peak_mib: int  # once the allocator has stopped growing
    growth_seconds: float  # how long it grows from the first step on; 0 takes all of it before the first step
    leak_mib_a_minute: float = 0.0  # what is kept for good from the first step on


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The host, as the processes of the job see it."""

    cores: int  # logical cores the job may use
    work_seconds: float  # processor seconds the loader spends on one batch
    idle_percent: float  # load without the job
    ram_total_mib: int  # memory installed
    ram_job_mib: int  # memory the job's processes hold
    iowait_percent: float  # mean share of time spent waiting for storage
    busiest_percent: float | None = None  # load of the busiest core while the job runs; None spreads the load over all


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A finding the log must lead to; `gpu` is None where the whole job is meant."""

    kind: str
    gpu: int | None = None
    severities: tuple[str, ...] = ("warning", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is wrong with the hardware or its recorder."""

    link: int | None = None  # a GPU with a PCIe link of 8 lanes of generation 3
    # a GPU, and the second at which it counts an error that could not be corrected
    errors: tuple[int, float] | None = None
    lost: tuple[int, float] | None = None  # a GPU, and the second from which it is lost
    # second after which the recorder of the GPUs writes no more; the one of the host goes on
    stops: float | None = None
    silent: tuple[float, float] | None = None  # seconds between which it writes nothing

    def unseen(self, second: float) -> bool:
        """Return whether the recorder of the GPUs writes nothing at a moment."""
        asleep = self.silent is not None and self.silent[0] <= second < self.silent[1]
        return asleep or (self.stops is not None and second > self.stops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One sample log."""

    folder: str  # where it lies, under sample_logs/
    seed: int  # start of the random stream
    started: str  # local time of the first row
    interval: int  # seconds asked for with `-l`
    model: Model  # kind of GPU
    coolings: tuple[Cooling, ...]  # one slot a GPU
    job: Job  # what runs
    intensity: float  # power the job's kernels draw, see `hardware.simulate`
    controller: float  # share of busy time in which memory is read or written
    memory: Memory  # what the job holds
    machine: Machine | None = None  # the host; None records no host log
    fields: tuple[str, ...] = field(default=LEAN)  # what nvidia-smi was asked for
    shares: tuple[float, ...] = ()  # work of each GPU as a share of the job's; empty where all do the same
    # how long, after the last step, all GPUs but the last spin in a collective it never joined
    hung_seconds: float = 0.0
    kept_seconds: float = 0.0  # how long memory stays held after the job, to the end of the log
    log: str = "nvidia-smi.csv"  # file of the log, which says what wrote it
    faults: Faults = field(default_factory=Faults)  # what is wrong with the hardware or its recorder
    copied_bytes_per_second: float = 0.0  # what comes over the PCIe link of each GPU; 0 where it was not recorded
    # step after which the validation loss falls no more; None where no losses were written
    learns_until: int | None = None
    options: tuple[str, ...] = ()  # what to tell the analysis beside the log
    # findings the log must lead to; it leads to no other warning and no other problem
    planted: tuple[Planted, ...] = ()


_STARVED_STEPS = 1000
_L4_SLOTS = (
    Cooling(inlet_celsius=24.0, kelvin_per_watt=0.62),
    Cooling(inlet_celsius=25.5, kelvin_per_watt=0.64),
)
_ONE_L4 = _L4_SLOTS[:1]
_L4_MEMORY = Memory(context_mib=398, model_mib=5212, peak_mib=17_310, growth_seconds=9.0)
_ONE_A100 = (Cooling(inlet_celsius=23.0, kelvin_per_watt=0.098),)
_A100_HOST = Machine(
    cores=32,
    work_seconds=0.9,
    idle_percent=1.5,
    ram_total_mib=257_480,
    ram_job_mib=41_300,
    iowait_percent=0.4,
)
_H100_MEMORY = Memory(context_mib=530, model_mib=21_840, peak_mib=66_204, growth_seconds=16.0)
_H100_HOST = Machine(
    cores=48,
    work_seconds=7.2,
    idle_percent=2.0,
    ram_total_mib=515_480,
    ram_job_mib=88_300,
    iowait_percent=0.3,
)
_ANY = ("info", "warning", "problem")
_DECODING_SECONDS = 5.0


def _starved_machine(cores: int, ram_job_mib: int) -> Machine:
    return Machine(
        cores=cores,
        work_seconds=_DECODING_SECONDS,
        idle_percent=1.5,
        ram_total_mib=193_120,
        ram_job_mib=ram_job_mib,
        iowait_percent=0.6,
    )


BASELINE = Scenario(
    folder="input_starved/1-baseline",
    seed=11,
    started="2026-03-12 09:14:05.417",
    interval=1,
    model=L4,
    coolings=_L4_SLOTS,
    job=Job(
        steps=_STARVED_STEPS,
        first=10.0,
        compute_seconds=0.305,
        load_seconds=0.66,
        load_spread=0.35,
        shard_spread=0.12,
        stall_steps=125,
        stall_seconds=8.0,
    ),
    intensity=1.12,
    controller=0.58,
    memory=_L4_MEMORY,
    machine=_starved_machine(cores=8, ram_job_mib=18_400),
    planted=(Planted(kind="cpu_bound"), Planted(kind="idle_gap", severities=_ANY)),
)
MORE_WORKERS = Scenario(
    folder="input_starved/2-more-workers",
    seed=12,
    started="2026-03-12 10:02:41.083",
    interval=1,
    model=L4,
    coolings=_L4_SLOTS,
    job=Job(
        steps=_STARVED_STEPS,
        first=10.0,
        compute_seconds=0.305,
        load_seconds=0.357,
        load_spread=0.35,
        shard_spread=0.22,
    ),
    intensity=1.12,
    controller=0.58,
    memory=Memory(context_mib=398, model_mib=5212, peak_mib=17_310, growth_seconds=7.0),
    machine=_starved_machine(cores=24, ram_job_mib=41_200),
)
MIXED_PRECISION = Scenario(
    folder="input_starved/3-mixed-precision",
    seed=13,
    started="2026-03-12 10:31:18.902",
    interval=1,
    model=L4,
    coolings=_L4_SLOTS,
    job=Job(
        steps=_STARVED_STEPS,
        first=10.0,
        compute_seconds=0.196,
        load_seconds=0.228,
        load_spread=0.35,
        shard_spread=0.22,
    ),
    intensity=1.05,
    controller=0.47,
    memory=Memory(context_mib=398, model_mib=4120, peak_mib=11_874, growth_seconds=6.0),
    machine=_starved_machine(cores=24, ram_job_mib=41_600),
)
THERMAL = Scenario(
    folder="thermal_throttle",
    seed=21,
    started="2026-04-02 14:20:00.236",
    interval=3,
    model=A10G,
    coolings=(
        Cooling(inlet_celsius=27.0, kelvin_per_watt=0.152),
        Cooling(inlet_celsius=27.5, kelvin_per_watt=0.157),
        Cooling(inlet_celsius=28.0, kelvin_per_watt=0.160, fails_at=250.0, failed_kelvin_per_watt=0.262),
        Cooling(inlet_celsius=27.0, kelvin_per_watt=0.155),
    ),
    job=Job(steps=1420, first=17.0, compute_seconds=0.46, load_seconds=0.20),
    intensity=0.94,
    controller=0.55,
    memory=Memory(context_mib=412, model_mib=6204, peak_mib=17_906, growth_seconds=14.0),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="thermal_throttle", gpu=2),),
)
PRESSURE = Scenario(
    folder="mem_pressure",
    seed=31,
    log="nvidia-smi.csv.gz",
    started="2026-04-09 22:05:10.640",
    interval=2,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=1150, first=15.0, compute_seconds=0.39, load_seconds=0.22),
    intensity=0.82,
    controller=0.61,
    memory=Memory(context_mib=512, model_mib=33_418, peak_mib=79_018, growth_seconds=26.0),
    planted=(Planted(kind="mem_pressure", gpu=0),),
)
PREALLOCATED = Scenario(
    folder="mem_prealloc",
    seed=32,
    log="nvidia-smi.csv.gz",
    started="2026-04-10 08:47:33.118",
    interval=2,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=1150, first=15.0, compute_seconds=0.39, load_seconds=0.22),
    intensity=0.78,
    controller=0.52,
    memory=Memory(context_mib=512, model_mib=62_004, peak_mib=62_110, growth_seconds=0.0),
    planted=(Planted(kind="mem_prealloc", gpu=0, severities=("info",)),),
)
HEALTHY = Scenario(
    folder="healthy",
    seed=41,
    started="2026-05-06 11:30:12.771",
    interval=3,
    model=H100,
    coolings=(
        Cooling(inlet_celsius=24.0, kelvin_per_watt=0.056),
        Cooling(inlet_celsius=24.5, kelvin_per_watt=0.058),
    ),
    job=Job(steps=1060, first=18.0, compute_seconds=0.40, load_seconds=0.21, epoch_steps=500, pause_seconds=1.6),
    intensity=0.88,
    controller=0.63,
    memory=_H100_MEMORY,
    machine=_H100_HOST,
    fields=FULL,
)
MONITORED = Scenario(
    folder="dmon",
    seed=51,
    started="2026-05-11 16:20:03.512",
    interval=2,
    model=L4,
    coolings=_ONE_L4,
    job=Job(
        steps=700,
        first=12.0,
        compute_seconds=0.305,
        load_seconds=0.21,
        stall_steps=175,
        stall_seconds=30.0,
    ),
    intensity=1.12,
    controller=0.58,
    memory=_L4_MEMORY,
    log="dmon.log",
    planted=(Planted(kind="idle_gap", gpu=0, severities=_ANY),),
)

GPUSTAT = Scenario(
    folder="gpustat",
    seed=51,
    started="2026-05-13 16:20:04.530",
    interval=2,
    model=L4,
    coolings=_L4_SLOTS,
    job=Job(
        steps=240,
        first=10.0,
        compute_seconds=0.305,
        load_seconds=0.20,
        stall_steps=110,
        stall_seconds=14.0,
    ),
    intensity=1.05,
    controller=0.52,
    memory=Memory(context_mib=398, model_mib=4120, peak_mib=12_874, growth_seconds=6.0),
    log="gpustat.json",
    planted=(
        Planted(kind="idle_gap", severities=_ANY),
        Planted(kind="startup_idle", severities=("warning",)),
    ),
)
DCGM = Scenario(
    folder="dcgm",
    seed=61,
    started="2026-05-14 10:02:31.114",
    interval=2,
    model=A10G,
    coolings=(
        Cooling(inlet_celsius=27.0, kelvin_per_watt=0.152),
        Cooling(inlet_celsius=28.0, kelvin_per_watt=0.160, fails_at=60.0, failed_kelvin_per_watt=0.262),
    ),
    job=Job(steps=450, first=9.0, compute_seconds=0.46, load_seconds=0.20),
    intensity=0.94,
    controller=0.55,
    memory=Memory(context_mib=412, model_mib=6204, peak_mib=17_906, growth_seconds=14.0),
    log="dcgmi-dmon.txt",
    planted=(Planted(kind="thermal_throttle", gpu=1),),
)
WANDB = replace(GPUSTAT, folder="wandb", seed=52, started="2026-05-15 08:30:00.250", log="wandb.csv")
MAPPED = replace(
    GPUSTAT,
    folder="mapped",
    seed=53,
    started="2026-05-16 11:05:00",
    log="wrapper.csv",
    options=("--map", str(Path(__file__).parents[2] / "sample_logs" / "mapped" / "map.toml")),
)
_FITTING = Memory(context_mib=512, model_mib=21_418, peak_mib=62_018, growth_seconds=26.0)
IO_BOUND = Scenario(
    folder="io_bound",
    seed=71,
    started="2026-05-20 09:40:12.204",
    interval=5,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=640, first=15.0, compute_seconds=0.41, load_seconds=0.22, stall_steps=4, stall_seconds=2.6),
    intensity=0.82,
    controller=0.61,
    memory=_FITTING,
    machine=_A100_HOST,
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="io_bound", gpu=0),),
)
SINGLE_CORE = Scenario(
    folder="cpu_bound_single",
    seed=72,
    started="2026-05-21 13:05:44.870",
    interval=5,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=760, first=15.0, compute_seconds=0.38, load_seconds=0.94, load_spread=0.3),
    intensity=0.82,
    controller=0.61,
    memory=_FITTING,
    machine=replace(_A100_HOST, work_seconds=0.94, iowait_percent=0.3, busiest_percent=99.0),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="cpu_bound_single", gpu=0, severities=("warning",)),),
)
UNDERUTILISED = Scenario(
    folder="underutilised",
    seed=73,
    started="2026-05-22 08:12:31.455",
    interval=5,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=800, first=15.0, compute_seconds=0.36, load_seconds=0.2, launch_seconds=0.52),
    intensity=0.62,
    controller=0.44,
    memory=_FITTING,
    machine=replace(_A100_HOST, work_seconds=1.2, iowait_percent=0.3),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="underutilised", gpu=0, severities=("warning",)),),
)
HOST_MEMORY = Scenario(
    folder="host_memory_pressure",
    seed=74,
    started="2026-05-23 17:31:05.093",
    interval=5,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=420, first=15.0, compute_seconds=0.41, load_seconds=0.95, load_spread=0.3),
    intensity=0.82,
    controller=0.61,
    memory=_FITTING,
    machine=Machine(
        cores=16,
        work_seconds=14.0,
        idle_percent=1.5,
        ram_total_mib=128_740,
        ram_job_mib=117_200,
        iowait_percent=0.5,
    ),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="cpu_bound", gpu=0), Planted(kind="host_memory_pressure", severities=("warning",))),
)
_INTERRUPTED = Job(
    steps=700,
    first=12.0,
    compute_seconds=0.305,
    load_seconds=0.21,
    stall_steps=350,
    stall_seconds=90.0,
)
LOOKED_AT = Scenario(
    folder="tables",
    seed=61,
    started="2026-05-12 10:02:40.000",
    interval=15,
    model=L4,
    coolings=_ONE_L4,
    job=_INTERRUPTED,
    intensity=1.12,
    controller=0.58,
    memory=_L4_MEMORY,
    log="nvidia-smi.log",
    planted=(Planted(kind="idle_gap", gpu=0, severities=_ANY),),
)
QUERIED = Scenario(
    folder="q_xml",
    seed=62,
    started="2026-05-12 14:30:05.000",
    interval=25,
    model=L4,
    coolings=_ONE_L4,
    job=_INTERRUPTED,
    intensity=1.12,
    controller=0.58,
    memory=_L4_MEMORY,
    log="nvidia-smi-q.xml",
    planted=(Planted(kind="idle_gap", gpu=0, severities=_ANY),),
)
_A100_SLOTS = (
    Cooling(inlet_celsius=23.0, kelvin_per_watt=0.098),
    Cooling(inlet_celsius=23.5, kelvin_per_watt=0.101),
    Cooling(inlet_celsius=24.0, kelvin_per_watt=0.099),
)
_STEADY = Job(steps=520, first=12.0, compute_seconds=0.39, load_seconds=0.22)
_ROOMY = Memory(context_mib=512, model_mib=18_204, peak_mib=61_340, growth_seconds=12.0)
_BEGUN = Planted(kind="startup_idle", severities=_ANY)
_GAPS = Planted(kind="idle_gap", severities=_ANY)
HUNG = Scenario(
    folder="hollow_util",
    seed=71,
    started="2026-06-03 08:12:44.202",
    interval=3,
    model=A100,
    coolings=_A100_SLOTS,
    job=_STEADY,
    intensity=0.82,
    controller=0.61,
    memory=_ROOMY,
    hung_seconds=150.0,
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="hollow_util", severities=("problem",)), _GAPS),
)
UNEVEN = Scenario(
    folder="imbalance",
    seed=72,
    started="2026-06-04 17:40:09.915",
    interval=3,
    model=A100,
    coolings=_A100_SLOTS,
    job=_STEADY,
    intensity=0.82,
    controller=0.61,
    memory=_ROOMY,
    shares=(1.0, 0.58, 1.0),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="imbalance", gpu=1), _BEGUN),
)
UNUSED = Scenario(
    folder="unused_gpu",
    seed=73,
    started="2026-06-05 11:05:50.344",
    interval=3,
    model=A100,
    coolings=_A100_SLOTS[:2],
    job=_STEADY,
    intensity=0.82,
    controller=0.61,
    memory=_ROOMY,
    shares=(1.0, 0.0),
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="unused_gpu", gpu=1), _GAPS, _BEGUN),
)
KEPT = Scenario(
    folder="zombie_memory",
    seed=74,
    started="2026-06-06 21:33:01.670",
    interval=3,
    model=A100,
    coolings=_A100_SLOTS[:1],
    job=_STEADY,
    intensity=0.82,
    controller=0.61,
    memory=_ROOMY,
    kept_seconds=240.0,
    log="nvidia-smi.csv.gz",
    planted=(Planted(kind="zombie_memory", gpu=0), Planted(kind="tail_idle", severities=_ANY)),
)

LEAKING = Scenario(
    folder="mem_leak",
    seed=71,
    log="nvidia-smi.csv.gz",
    started="2026-05-18 19:40:22.314",
    interval=4,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=1700, first=16.0, compute_seconds=0.40, load_seconds=0.22),
    intensity=0.80,
    controller=0.57,
    memory=Memory(context_mib=512, model_mib=21_230, peak_mib=41_608, growth_seconds=24.0, leak_mib_a_minute=1180.0),
    planted=(Planted(kind="mem_leak", gpu=0),),
)
PAUSING = Scenario(
    folder="periodic_stall",
    seed=72,
    log="nvidia-smi.csv.gz",
    started="2026-05-19 08:12:47.905",
    interval=3,
    model=A100,
    coolings=_ONE_A100,
    job=Job(steps=1500, first=17.0, compute_seconds=0.38, load_seconds=0.21, epoch_steps=200, pause_seconds=14.0),
    intensity=0.84,
    controller=0.60,
    memory=Memory(context_mib=512, model_mib=24_010, peak_mib=61_880, growth_seconds=21.0),
    planted=(Planted(kind="periodic_stall", gpu=0), Planted(kind="idle_gap", gpu=0)),
)
FAULTY = Scenario(
    folder="faulty_hardware",
    seed=73,
    log="nvidia-smi.csv.gz",
    started="2026-05-20 13:05:09.226",
    interval=6,
    model=A100,
    coolings=tuple(Cooling(inlet_celsius=22.0 + slot, kelvin_per_watt=0.098) for slot in range(3)),
    job=Job(steps=900, first=15.0, compute_seconds=0.41, load_seconds=0.22),
    intensity=0.81,
    controller=0.58,
    memory=Memory(context_mib=512, model_mib=23_118, peak_mib=62_404, growth_seconds=19.0),
    fields=LINKED,
    faults=Faults(link=0, errors=(1, 160.0), lost=(2, 290.0)),
    planted=(
        Planted(kind="pcie_degraded", gpu=0),
        Planted(kind="ecc_error", gpu=1, severities=("problem",)),
        Planted(kind="gpu_lost", gpu=2, severities=("problem",)),
    ),
)
UNWATCHED = Scenario(
    folder="monitoring_ended",
    seed=74,
    log="nvidia-smi.csv.gz",
    started="2026-05-21 10:48:55.067",
    interval=5,
    model=H100,
    coolings=(Cooling(inlet_celsius=24.0, kelvin_per_watt=0.056),),
    job=Job(steps=1400, first=18.0, compute_seconds=0.40, load_seconds=0.21),
    intensity=0.86,
    controller=0.62,
    memory=_H100_MEMORY,
    machine=_H100_HOST,
    faults=Faults(stops=390.0),
    planted=(Planted(kind="monitoring_ended", gpu=0),),
)

SCENARIOS = (
    *(BASELINE, MORE_WORKERS, MIXED_PRECISION, THERMAL, PRESSURE, PREALLOCATED, HEALTHY, MONITORED),
    *(LOOKED_AT, QUERIED, GPUSTAT, DCGM, WANDB, MAPPED),
    *(HUNG, UNEVEN, UNUSED, KEPT),
    *(IO_BOUND, SINGLE_CORE, UNDERUTILISED, HOST_MEMORY),
    *(LEAKING, PAUSING, FAULTY, UNWATCHED),
)
"""Every sample log, each in a folder of its own."""

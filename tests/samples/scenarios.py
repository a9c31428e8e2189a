"""The sample logs: what each one plays through, and what a reader must find in it."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.samples.hardware import A10G, A100, H100, L4, Cooling, Job, Model

FULL = (
    *("timestamp", "index", "name", "uuid", "pci.bus_id", "driver_version", "pstate", "utilization.gpu"),
    *("utilization.memory", "memory.total", "memory.reserved", "memory.used", "temperature.gpu", "power.draw"),
    *("enforced.power.limit", "power.default_limit", "clocks.current.sm", "clocks.max.sm"),
    "clocks_event_reasons.active",
)
"""The query fields that answer every question an nvidia-smi log can answer."""
LEAN = tuple(name for name in FULL if name not in {"uuid", "pci.bus_id", "driver_version", "pstate"})
"""The same without what only identifies the card; most samples keep to these, for the size of the repository."""
LINKED = (
    *LEAN,
    *("pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max"),
    "ecc.errors.uncorrected.volatile.total",
)
"""With the link and the errors of memory."""
_FIELDS = {"full": FULL, "lean": LEAN, "linked": LINKED}
_MODELS = {"A10G": A10G, "A100": A100, "H100": H100, "L4": L4}
_HERE = Path(__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    context_mib: int  # the context alone
    model_mib: int  # with weights and optimizer, before the first step
    peak_mib: int  # once the allocator has stopped growing
    growth_seconds: float  # how long it grows from the first step on; 0 takes all of it before the first step
    leak_mib_a_minute: float = 0.0  # what is kept for good from the first step on


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
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
    link: int | None = None  # a GPU with a PCIe link of 8 lanes of generation 3
    # a GPU, and the second at which it counts an error that could not be corrected
    errors: tuple[int, float] | None = None
    lost: tuple[int, float] | None = None  # a GPU, and the second from which it is lost
    # second after which the recorder of the GPUs writes no more; the one of the host goes on
    stops: float | None = None
    silent: tuple[float, float] | None = None  # seconds between which it writes nothing

    def unseen(self, second: float) -> bool:
        asleep = self.silent is not None and self.silent[0] <= second < self.silent[1]
        return asleep or (self.stops is not None and second > self.stops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
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
    rated_steps: int | None = None  # steps after which the rate is written each time; None where it is not
    options: tuple[str, ...] = ()  # what to tell the analysis beside the log
    # findings the log must lead to; it leads to no other warning and no other problem
    planted: tuple[Planted, ...] = ()


def _read(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table of `scenarios.toml` says, as fields of a scenario."""
    parts = {"job": Job, "machine": Machine, "memory": Memory}
    fields = {key: parts[key](**value) if key in parts else value for key, value in table.items() if key != "like"}
    lists = {"coolings": Cooling, "planted": Planted}
    fields |= {key: tuple(lists[key](**_frozen(each)) for each in table[key]) for key in lists if key in table}
    if "model" in table:
        given = table["model"] if isinstance(table["model"], dict) else {"name": table["model"]}
        changed = {key: value for key, value in given.items() if key != "name"}
        fields["model"] = replace(_MODELS[given["name"]], **changed)
    if "faults" in table:
        fields["faults"] = Faults(**_frozen(table["faults"]))
    if "fields" in table:
        fields["fields"] = _FIELDS[table["fields"]]
    samples = str(_HERE.parents[2] / "sample_logs")
    if "options" in table:
        fields["options"] = tuple(word.replace("sample_logs", samples) for word in table["options"])
    return _frozen(fields)


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _list_scenarios() -> Iterator[Scenario]:
    """Yield every sample of `scenarios.toml`; what it does not say is that of the one it is like."""
    tables = tomllib.loads(_HERE.with_suffix(".toml").read_text(encoding="utf-8"))
    made: dict[str, dict[str, Any]] = {"plain": _read(tables.pop("plain"))}
    for name, table in tables.items():
        made[name] = {**made[table.get("like", "plain")], **_read(table)}
        yield Scenario(folder=name, **made[name])


SCENARIOS = tuple(_list_scenarios())
"""Every sample log, each in a folder of its own."""

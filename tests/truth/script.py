"""What a labelled run is made of: the parts of a job, its machine, and how it was logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.truth.cards import A100, Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a job on one GPU."""

    seconds: float  # its length
    label: str = ""  # the kind a reader should find here; empty for work that is in order
    texture: str = "steps"  # `steps`, `requests`, `spin` (one kernel throughout) or `still`
    step: float = 0.35  # mean seconds a step computes
    duty: float = 1.0  # share of the time a kernel runs, below 1 because the next batch is late
    spread: float = 0.5  # how unevenly batches arrive, the standard deviation of their logarithm
    rate: float = 0.0  # requests a second, for requests
    swing: float = 0.0  # how far the rate follows the time of day, 0 to 1
    heat: float = 0.8  # power above readiness while a kernel runs, as a share of what a heavy one takes
    slow: float = 1.0  # what the machine makes of the clock: 1, or less while it asserts a slowdown
    held: float = 1.0  # the same where nothing in the log says that it is held
    cpu: float = 17.0  # mean use of all cores in per cent
    core: float = 48.0  # use of the busiest core in per cent
    iowait: float = 0.4  # time waiting for storage in per cent
    cause: str = ""  # what lies behind a pause


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much memory a job takes, in shares of what is installed."""

    first: float = 0.3  # taken when it begins
    grown: float = 0.62  # taken in the end of the warm-up, in ever rarer chunks
    leak: float = 0.0  # taken more in each second of the job
    chunk: float = 0.006  # size of one chunk
    swing: float = 0.0  # highest extra that batches of changing length need
    kept: float = 0.0  # share of the peak that stays after the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A labelled run before it is played."""

    name: str = ""  # the scenario
    parts: Parts  # what every GPU does
    own: Mapping[int, Parts] = field(default_factory=dict)  # what single GPUs do instead, by index
    card: Card = A100  # the kind of GPU
    gpus: int = 1  # how many
    interval: float = 1.0  # seconds between samples
    host: bool = True  # whether a host log lies beside
    columns: str = "common"  # name of the column set
    memory: Memory = field(default_factory=Memory)  # what the job takes
    kelvin: float = 42.0  # degrees a watt makes the card warmer, times the power limit
    fails: float | None = None  # share of the run from which the air no longer flows; None when it always does
    limit: float = 1.0  # power limit as a share of the default
    clock: float = 1.0  # highest clock the operator allows, as a share
    ram: float = 45.0  # use of the host's memory in per cent
    lanes: int = 16  # PCIe lanes in use under load of the 16 there are
    ecc: tuple[int, int] = (0, 0)  # errors counted before the run and in it
    lost: tuple[int, float] | None = None  # GPU that falls off the bus at a share of the run
    holes: tuple[tuple[float, float], ...] = ()  # (begin, length) of stretches without samples, in shares of the run
    absent: float = 0.0  # share of cells that say N/A
    whole: tuple[str, ...] = ()  # kinds that hold for the whole run
    period: float | None = None  # seconds between starts of pauses that recur
    trap: bool = False  # whether nobody has to act on anything here
    clean: bool = False  # whether nothing but information may be said

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    def of(self, gpu: int) -> Parts:
        return self.own.get(gpu, self.parts)

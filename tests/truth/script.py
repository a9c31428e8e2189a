"""What a labelled run is made of: the parts of a job, its machine, and how it was logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.truth.cards import A100, Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a job on one GPU.

    Attributes:
        seconds: its length.
        label: the kind a reader should find here; empty for work that is in order.
        texture: `steps`, `requests`, `spin` (one kernel throughout) or `still`.
        step: mean seconds a step computes.
        duty: share of the time a kernel runs, below 1 because the next batch is late.
        spread: how unevenly batches arrive, the standard deviation of their logarithm.
        rate: requests a second, for requests.
        swing: how far the rate follows the time of day, 0 to 1.
        heat: power above readiness while a kernel runs, as a share of what a heavy one takes.
        slow: what the machine makes of the clock: 1, or less while it asserts a slowdown.
        cpu: mean use of all cores in per cent.
        core: use of the busiest core in per cent.
        iowait: time waiting for storage in per cent.
        cause: what lies behind a pause.
    """

    seconds: float
    label: str = ""
    texture: str = "steps"
    step: float = 0.35
    duty: float = 1.0
    spread: float = 0.5
    rate: float = 0.0
    swing: float = 0.0
    heat: float = 0.8
    slow: float = 1.0
    cpu: float = 17.0
    core: float = 48.0
    iowait: float = 0.4
    cause: str = ""


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much memory a job takes, in shares of what is installed.

    Attributes:
        first: taken when it begins.
        grown: taken in the end of the warm-up, in ever rarer chunks.
        leak: taken more in each second of the job.
        chunk: size of one chunk.
        swing: highest extra that batches of changing length need.
        kept: share of the peak that stays after the job.
    """

    first: float = 0.3
    grown: float = 0.62
    leak: float = 0.0
    chunk: float = 0.006
    swing: float = 0.0
    kept: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A labelled run before it is played.

    Attributes:
        name: the scenario.
        parts: what every GPU does.
        own: what single GPUs do instead, by index.
        card: the kind of GPU.
        gpus: how many.
        interval: seconds between samples.
        host: whether a host log lies beside.
        columns: name of the column set.
        memory: what the job takes.
        kelvin: degrees a watt makes the card warmer, times the power limit.
        fails: share of the run from which the air no longer flows; None when it always does.
        limit: power limit as a share of the default.
        clock: highest clock the operator allows, as a share.
        ram: use of the host's memory in per cent.
        lanes: PCIe lanes in use under load of the 16 there are.
        ecc: errors counted before the run and in it.
        lost: GPU that falls off the bus at a share of the run.
        holes: (begin, length) of stretches without samples, in shares of the run.
        absent: share of cells that say N/A.
        whole: kinds that hold for the whole run.
        period: seconds between starts of pauses that recur.
        trap: whether nobody has to act on anything here.
        clean: whether nothing but information may be said.
    """

    name: str
    parts: Parts
    own: Mapping[int, Parts] = field(default_factory=dict)
    card: Card = A100
    gpus: int = 1
    interval: float = 1.0
    host: bool = True
    columns: str = "common"
    memory: Memory = field(default_factory=Memory)
    kelvin: float = 42.0
    fails: float | None = None
    limit: float = 1.0
    clock: float = 1.0
    ram: float = 45.0
    lanes: int = 16
    ecc: tuple[int, int] = (0, 0)
    lost: tuple[int, float] | None = None
    holes: tuple[tuple[float, float], ...] = ()
    absent: float = 0.0
    whole: tuple[str, ...] = ()
    period: float | None = None
    trap: bool = False
    clean: bool = False

    @property
    def seconds(self) -> float:
        """Length of the run."""
        return sum(part.seconds for part in self.parts)

    def of(self, gpu: int) -> Parts:
        """Return what one GPU does."""
        return self.own.get(gpu, self.parts)

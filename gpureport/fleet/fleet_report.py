"""The report on many runs, as values: every format renders these, and words are made last.

GPU time is in seconds, money in the report's currency, shares from 0 to 1. None is not known.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """A run by its id and name, and by the locator of its source, if known."""

    id: str
    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUse:
    """What some runs did with their GPUs.

    Attributes:
        runs: how many they are.
        gpu_seconds: GPU time of jobs, from first to last sample; what shares are shares of.
        lost_gpu_seconds: the part of it that was lost.
        unknown_gpu_seconds: the part of it of which nothing is known.
        no_job_gpu_seconds: GPU time besides, in which no job held a GPU.
        cost: of the GPU time of jobs; None where a GPU has no price.
        lost_cost: of the part that was lost; None as above.
    """

    runs: int
    gpu_seconds: float
    lost_gpu_seconds: float
    unknown_gpu_seconds: float = 0.0
    no_job_gpu_seconds: float = 0.0
    cost: float | None = None
    lost_cost: float | None = None

    @property
    def lost_ratio(self) -> float | None:
        """Share of the GPU time that was lost; None without any GPU time."""
        return self.lost_gpu_seconds / self.gpu_seconds if self.gpu_seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTime:
    """GPU time of one class (of `GPU_TIME_CLASSES`), and its cost; None where a GPU has no price."""

    name: str
    gpu_seconds: float
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs that share a label, such as one user.

    Attributes:
        name: value of the label; None for runs without the label, and for the rest.
        use: what they did with their GPUs.
        largest_loss: the lost class with most time; None where nothing was lost.
        groups: how many groups it stands for: more than 1 for the rest alone.
    """

    name: str | None
    use: TimeUse
    largest_loss: ClassTime | None
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """All runs by one label.

    Attributes:
        label: `user`, `project`, `job`, `node`, `model`, `step`, or any other tag or param.
        groups: those that lost most GPU time, the worst first; always with the runs without the label.
        rest: all other groups as one; None where there are none.
    """

    label: str
    groups: tuple[Group, ...]
    rest: Group | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUse:
    """One run, whose it is, and what it did with its GPUs.

    Attributes:
        run: the run.
        user: whose it is; None where that is not recorded.
        use: what it did with its GPUs.
        largest_loss: the lost class with most time; None where nothing was lost.
        is_lower_bound: whether the loss is one, since short pauses took more than 30% of the time.
    """

    run: RunName
    user: str | None
    use: TimeUse
    largest_loss: ClassTime | None
    is_lower_bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """One step of the advice catalogue, over all runs whose findings ask for it first.

    Each lost second counts once, with the step that is most promising for it.

    Attributes:
        step: its name in the catalogue.
        title: what to do, as reports of the runs say; as the catalogue does where they name GPUs in it.
        kinds: kinds of findings that ask for it, the one that lost most first.
        runs: how many runs it is for.
        gpu_seconds: GPU time these findings lost, so what the step could save at most.
        cost: of that time; None where a GPU has no price.
        examples: the runs with most of it, the worst first, at most three.
        other_steps: steps that these findings ask for next, the most frequent first, at most three.
    """

    step: str
    title: str
    kinds: tuple[str, ...]
    runs: int
    gpu_seconds: float
    cost: float | None
    examples: tuple[RunName, ...]
    other_steps: tuple[str, ...]


class Symptom(StrEnum):
    """What speaks for a sick GPU, the gravest first."""

    GPU_LOST = "gpu_lost"
    ECC_UNCORRECTED = "ecc_uncorrected"
    REMAPPED_ROWS = "remapped_rows"
    HARDWARE_SLOWED = "hardware_slowed"
    HEAT_SLOWED = "heat_slowed"
    SLOW_LINK = "slow_link"
    ECC_CORRECTED = "ecc_corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomCount:
    """A symptom of one GPU over its runs.

    Attributes:
        symptom: what was seen.
        runs: the runs that show it, in the order of time.
        assessed: how many runs of the GPU could show it.
        amount: seconds slowed, errors in all, rows remapped at last; None without an amount.
    """

    symptom: Symptom
    runs: tuple[RunName, ...]
    assessed: int
    amount: float | None


class CardVerdict(StrEnum):
    """What to do with a GPU: take it out, keep an eye on it, nothing, or not known."""

    PULL = "pull"
    WATCH = "watch"
    HEALTHY = "healthy"
    NOT_ASSESSED = "not assessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHealth:
    """One GPU over all of its runs.

    Attributes:
        uuid: its identity; None where no run recorded it, then it is known by node and device.
        model: marketing name.
        node: the machine it was last seen in.
        device: device id it last had there.
        runs: how many runs used it.
        gpu_seconds: GPU time of jobs on it.
        max_temperature_celsius: highest core temperature of any run.
        symptoms: what speaks for a sick GPU, the gravest first.
        verdict: what to do.
    """

    uuid: str | None
    model: str | None
    node: str | None
    device: str
    runs: int
    gpu_seconds: float
    max_temperature_celsius: float | None
    symptoms: tuple[SymptomCount, ...]
    verdict: CardVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHealth:
    """The health of all GPUs.

    Attributes:
        cards: those to pull or to watch, the gravest first.
        healthy: how many show no symptom.
        not_assessed: how many no run could assess.
        unidentified_gpu_seconds: GPU time on GPUs of which neither a uuid nor a node was recorded, so that they cannot
            be followed from run to run.
    """

    cards: tuple[CardHealth, ...]
    healthy: int
    not_assessed: int
    unidentified_gpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """One week.

    Attributes:
        monday: its first day, as ISO 8601.
        use: what runs did in it; a run across a border is divided evenly over its length.
        is_partial: whether the runs begin after its start or end before its end.
    """

    monday: str
    use: TimeUse
    is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A run that could not be summarised, and why."""

    run: RunName
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two runs that used the same GPU at the same time, so that its time is counted twice.

    Attributes:
        card: uuid of the GPU; its node and number there where no uuid was recorded.
        runs: the two runs.
        seconds: for how long.
    """

    card: str
    runs: tuple[RunName, RunName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnassessedCheck:
    """A kind that could not be judged, on how much of the fleet."""

    kind: str
    runs: int
    gpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPrices:
    """What GPU time was priced with.

    Attributes:
        currency: its name; empty where none is stated.
        date: when the prices held, as ISO 8601; empty where not stated.
        unpriced_models: GPU models without a price, by which no cost is known; empty where every GPU has one, or no
            price is stated at all.
    """

    currency: str = ""
    date: str = ""
    unpriced_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """Where the GPU time of many runs went.

    Attributes:
        selection: how the runs were selected, in words; empty for all.
        started: first sample of any run, in microseconds; None without a run that holds a GPU.
        ended: last sample of any run.
        is_zoned: whether every run names its time zone, so that times are UTC; else local.
        use: all runs together.
        gpus: how many different GPUs; None where one of several runs has neither a uuid nor a node.
        nodes: how many different nodes are named.
        energy_joules: energy of the GPUs that recorded it; None where none did.
        energy_gpu_seconds: GPU time of jobs that this energy is of.
        classes: GPU time by class, in the order of `GPU_TIME_CLASSES`; those without time are left out.
        prices: what it was priced with.
        half_lost_in: the fewest runs that hold half of the time lost; 0 without loss.
        half_lost_class: the class with most of what these runs lost; None where nothing was lost.
        worst_runs: the runs that lost most, the worst first.
        pausing_runs: runs of which more may be lost than is known, since short pauses took more than 30% of the time;
            those with the longest pauses first, at most twenty.
        groupings: all runs by user, project and the like.
        savings: what would save most, the most first.
        health: which GPU is sick.
        weeks: the trend, oldest first, weeks without a run included.
        undated_gpu_seconds: GPU time of jobs whose logs have no dates, in no week.
        failed: runs that could not be summarised.
        without_gpu: runs that hold no GPU.
        overlaps: runs that overlap on one GPU, the longest first, at most twenty.
        overlapping_gpu_seconds: GPU time of overlapping runs on one GPU beyond the time that passed.
        unassessed: kinds that could not be judged, on most GPU time first.
    """

    selection: str
    started: int | None
    ended: int | None
    is_zoned: bool
    use: TimeUse
    gpus: int | None
    nodes: int
    energy_joules: float | None
    energy_gpu_seconds: float
    classes: tuple[ClassTime, ...]
    prices: FleetPrices
    half_lost_in: int
    half_lost_class: str | None
    worst_runs: tuple[RunUse, ...]
    pausing_runs: tuple[RunName, ...]
    groupings: tuple[Grouping, ...]
    savings: tuple[Saving, ...]
    health: FleetHealth
    weeks: tuple[Week, ...]
    undated_gpu_seconds: float
    failed: tuple[FailedRun, ...]
    without_gpu: tuple[RunName, ...]
    overlaps: tuple[Overlap, ...]
    overlapping_gpu_seconds: float
    unassessed: tuple[UnassessedCheck, ...]

"""Reports on many runs, made by hand: a month of a large fleet, and one of which hardly anything is known."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from gpureport.fleet.fleet_report import (
    CardHealth,
    CardVerdict,
    ClassTime,
    FailedRun,
    FleetHealth,
    FleetPrices,
    FleetReport,
    Group,
    Grouping,
    Overlap,
    RunName,
    RunUse,
    Saving,
    Symptom,
    SymptomCount,
    TimeUse,
    UnassessedCheck,
    Week,
)

HOUR = 3600.0
PRICE = 2.5
HOSTILE = "<script>alert(1)</script> | #[*b*] `x` ${y} \x1b[31m\n$\\frac{x$ @all http://a.b/c"
"""A name that no format may take for markup."""

CLASSES = {
    "computing": 14_300.0,
    "short_pauses": 1_450.0,
    "hollow": 310.0,
    "low_use": 905.0,
    "throttled": 240.0,
    "waiting_for_input": 3_720.0,
    "idle": 1_160.0,
    "unused": 610.0,
    "startup": 402.0,
    "tail": 85.0,
    "gpu_lost": 12.0,
    "no_samples": 818.0,
    "no_job": 1_900.0,
}
"""GPU-hours of each class."""


def use(hours: float, lost: float, runs: int, *, priced: bool = True, unknown: float = 0.0) -> TimeUse:
    """Return what some runs did, priced at $2.50 an hour."""
    return TimeUse(
        runs=runs,
        gpu_seconds=hours * HOUR,
        lost_gpu_seconds=lost * HOUR,
        unknown_gpu_seconds=unknown * HOUR,
        cost=hours * PRICE if priced else None,
        lost_cost=lost * PRICE if priced else None,
    )


def class_time(name: str, hours: float) -> ClassTime:
    """Return the time of a class."""
    return ClassTime(name=name, gpu_seconds=hours * HOUR, cost=hours * PRICE)


def run_name(number: int) -> RunName:
    """Return a run."""
    return RunName(id=f"{number:04d}abcdef012345", name=f"train-{number:04d}")


def group(name: str | None, lost: float, *, share: float = 0.4, runs: int = 7, groups: int = 1) -> Group:
    """Return a group that lost so many hours, most of them waiting for data."""
    loss = class_time("waiting_for_input" if lost > 50 else "idle", lost * 0.6)
    return Group(name=name, use=use(lost / share, lost, runs), largest_loss=loss, groups=groups)


def grouping(label: str, name: str, count: int) -> Grouping:
    """Return the runs by a label of so many values, one group without it, the rest as one."""
    groups = [group(f"{name}{place:03d}", 900 / (place + 1)) for place in range(19)]
    groups.insert(3, group(None, 210, runs=140))
    return Grouping(label=label, groups=tuple(groups), rest=group(None, 3_000, runs=1_500, groups=count - 19))


def saving(step: str, title: str, hours: float, runs: int, kind: str) -> Saving:
    """Return a step of the catalogue over some runs."""
    return Saving(
        step=step,
        title=title,
        kinds=(kind,),
        runs=runs,
        gpu_seconds=hours * HOUR,
        cost=hours * PRICE,
        examples=tuple(run_name(number) for number in range(min(runs, 3))),
        other_steps=("persistent_workers",),
    )


def card(number: int, verdict: CardVerdict, *symptoms: SymptomCount) -> CardHealth:
    """Return a GPU."""
    return CardHealth(
        uuid=f"GPU-{number:08d}-1111-2222-3333-444455556666",
        model="NVIDIA H100 80GB HBM3",
        node=f"node{number:03d}",
        device=f"gpu:{number % 8}",
        runs=14,
        gpu_seconds=210 * HOUR,
        max_temperature_celsius=91.0,
        symptoms=symptoms,
        verdict=verdict,
    )


def symptom(name: Symptom, amount: float | None, runs: int = 5) -> SymptomCount:
    """Return a symptom seen in some of 14 runs."""
    return SymptomCount(
        symptom=name, runs=tuple(run_name(number) for number in range(runs)), assessed=14, amount=amount
    )


HEALTH = FleetHealth(
    cards=(
        card(17, CardVerdict.PULL, symptom(Symptom.GPU_LOST, None, 2), symptom(Symptom.ECC_UNCORRECTED, 3)),
        card(42, CardVerdict.PULL, symptom(Symptom.HEAT_SLOWED, 11_000)),
        card(88, CardVerdict.WATCH, symptom(Symptom.SLOW_LINK, None)),
        card(91, CardVerdict.WATCH, symptom(Symptom.ECC_CORRECTED, 1_204, 3), symptom(Symptom.REMAPPED_ROWS, 1, 3)),
    ),
    healthy=938,
    not_assessed=58,
    unidentified_gpu_seconds=120 * HOUR,
)

SAVINGS = (
    saving("loader_workers", "More loader workers", 1_210, 40, "cpu_bound_single"),
    saving("cache_near_compute", "Cache data near the GPU", 860, 22, "io_bound"),
    saving("release_gpus", "Give the GPUs back", 340, 210, "tail_idle"),
    saving("fewer_gpus", "Ask only for the GPUs used", 290, 31, "unused_gpu"),
    saving("shorter_startup", "Shorter start-up", 180, 900, "startup_idle"),
    saving("cooling", "Cool the GPU", 44, 12, "thermal_throttle"),
    replace(saving("mixed_precision", "Mixed precision", 0, 61, "full_precision"), cost=None),
)


def weeks(count: int = 5, first: date = date(2026, 9, 28)) -> tuple[Week, ...]:
    """Return weeks that lose less and less, the first and the last in part."""
    return tuple(
        Week(
            monday=(first + timedelta(days=7 * place)).isoformat(),
            use=use(4_800 - 300 * place, 1_900 - 200 * place, 400, unknown=160),
            is_partial=place in {0, count - 1},
        )
        for place in range(count)
    )


def micros(moment: str) -> int:
    """Return a moment of UTC in microseconds."""
    return int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1e6)


def month() -> FleetReport:
    """Return October of a thousand GPUs, 300 users and 2,000 runs."""
    lost = sum(hours for name, hours in CLASSES.items() if name not in {"computing", "short_pauses", "no_samples"})
    hours = sum(CLASSES.values()) - CLASSES["no_job"]
    whole = use(hours, lost - CLASSES["no_job"], 2_000, unknown=CLASSES["no_samples"])
    return FleetReport(
        selection="",
        started=micros("2026-10-01T00:05"),
        ended=micros("2026-10-31T23:50"),
        is_zoned=True,
        use=replace(whole, no_job_gpu_seconds=CLASSES["no_job"] * HOUR),
        gpus=1_000,
        nodes=125,
        energy_joules=3.1e10,
        energy_gpu_seconds=20_000 * HOUR,
        classes=tuple(class_time(name, hours) for name, hours in CLASSES.items()),
        prices=FleetPrices(currency="USD", date="2026-10-01"),
        half_lost_in=12,
        half_lost_class="waiting_for_input",
        worst_runs=tuple(
            RunUse(
                run=run_name(place),
                user=f"user{place:03d}" if place % 4 else None,
                use=use(900 / (place + 2), 500 / (place + 2), 1),
                largest_loss=class_time("waiting_for_input" if place % 3 else "idle", 300 / (place + 2)),
            )
            for place in range(20)
        ),
        groupings=(
            grouping("user", "user", 300),
            grouping("project", "project-", 41),
            grouping("job", "batch-", 1_200),
            grouping("node", "node", 125),
        ),
        savings=SAVINGS,
        health=HEALTH,
        weeks=weeks(),
        undated_gpu_seconds=30 * HOUR,
        failed=tuple(FailedRun(run=run_name(n), error=f"{n}.csv: no GPU log; first line: a,b") for n in range(3)),
        without_gpu=(run_name(50),),
        overlaps=(Overlap(card="GPU-00000017", runs=(run_name(1), run_name(2)), seconds=4 * HOUR),),
        overlapping_gpu_seconds=4 * HOUR,
        pausing_runs=(),
        unassessed=(
            UnassessedCheck(kind="cpu_bound", runs=700, gpu_seconds=9_000 * HOUR),
            UnassessedCheck(kind="ecc_error", runs=120, gpu_seconds=800 * HOUR),
        ),
    )


def hostile() -> FleetReport:
    """Return the month with a hostile name in every place that a name can have."""
    report, run = month(), RunName(id=HOSTILE, name=HOSTILE)
    first = report.groupings[0]
    return replace(
        report,
        selection=HOSTILE,
        prices=FleetPrices(currency=HOSTILE[:12], date=HOSTILE),
        worst_runs=(replace(report.worst_runs[0], run=run, user=HOSTILE),),
        groupings=(
            replace(first, groups=(replace(first.groups[0], name=HOSTILE), *first.groups[1:])),
            replace(first, label=HOSTILE),
        ),
        savings=(replace(SAVINGS[0], title=HOSTILE, examples=(run,)), *SAVINGS[1:]),
        health=replace(
            HEALTH, cards=(replace(HEALTH.cards[0], uuid=HOSTILE, node=HOSTILE, device=HOSTILE, model=HOSTILE),)
        ),
        failed=(FailedRun(run=run, error=HOSTILE),),
        without_gpu=(run,),
        overlaps=(Overlap(card=HOSTILE, runs=(run, run), seconds=60.0),),
    )


def bare() -> FleetReport:
    """Return three runs without labels, prices, uuids or a finding."""
    health = FleetHealth(cards=(), healthy=0, not_assessed=3, unidentified_gpu_seconds=0.0)
    whole = use(0.5, 0.001, 3, priced=False)
    nobody = Group(name=None, use=whole, largest_loss=None)
    return replace(
        month(),
        is_zoned=False,
        started=micros("2026-03-03T10:00"),
        ended=micros("2026-03-03T10:10"),
        use=whole,
        gpus=3,
        nodes=0,
        energy_joules=None,
        energy_gpu_seconds=0.0,
        classes=(
            ClassTime(name="computing", gpu_seconds=0.499 * HOUR, cost=None),
            ClassTime(name="startup", gpu_seconds=0.001 * HOUR, cost=None),
        ),
        prices=FleetPrices(),
        half_lost_in=1,
        half_lost_class="startup",
        worst_runs=(),
        groupings=(Grouping(label="user", groups=(nobody,), rest=None),),
        savings=(),
        health=health,
        weeks=(),
        undated_gpu_seconds=0.0,
        failed=(),
        without_gpu=(),
        overlaps=(),
        overlapping_gpu_seconds=0.0,
        pausing_runs=(),
        unassessed=(),
    )

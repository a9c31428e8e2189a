"""Which card to pull, over all of its runs."""

import pytest

from gpureport.analysis.cost.prices import Prices
from gpureport.fleet.fleet_report import CardVerdict, FleetHealth, Symptom
from gpureport.fleet.gpu_summary import GpuHealth, GpuSummary, HealthCheck
from gpureport.fleet.totals.fleet_health import assess_health
from gpureport.fleet.totals.priced_gpu import price_summaries
from tests.fleet.gpu_summaries import HOUR, make_gpu

COOL = GpuHealth(heat_slowed_seconds=0.0, ecc_uncorrected=0, gpu_lost=HealthCheck.CLEAR)
HOT = GpuHealth(heat_slowed_seconds=60.0, max_temperature_celsius=91.0)
LOST = GpuHealth(gpu_lost=HealthCheck.FOUND)


def assess(*gpus: GpuSummary) -> FleetHealth:
    """Return the health of some GPUs."""
    return assess_health(price_summaries(gpus, Prices()))


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([HOT, HOT, COOL], CardVerdict.PULL),
        ([HOT, COOL, COOL], CardVerdict.WATCH),
        ([HOT, HOT, COOL, COOL, COOL], CardVerdict.WATCH),
        ([LOST, COOL], CardVerdict.WATCH),
        ([LOST, COOL, LOST, COOL, COOL], CardVerdict.PULL),
        ([GpuHealth(ecc_uncorrected=1)], CardVerdict.PULL),
        ([GpuHealth(ecc_corrected=40)], CardVerdict.WATCH),
        ([GpuHealth(slow_link=HealthCheck.FOUND)] * 2, CardVerdict.PULL),
    ],
)
def test_a_card_with_symptoms(runs: list[GpuHealth], verdict: CardVerdict) -> None:
    """Once is watched, what lasts or comes again is pulled, and so is a memory error at once."""
    health = assess(*(make_gpu(f"r{place}", uuid="GPU-1", health=each) for place, each in enumerate(runs)))
    assert [card.verdict for card in health.cards] == [verdict]


def test_a_card_is_known_by_its_uuid_wherever_it_sits() -> None:
    """Its runs are named, of those that could show the symptom, and it is where it was seen last."""
    health = assess(
        make_gpu("late", uuid="GPU-1", node="n2", device="n2/gpu:3", started="2026-10-06T12:00", health=HOT),
        make_gpu("early", uuid="GPU-1", node="n1", device="gpu:0", health=HOT),
        make_gpu("blind", uuid="GPU-1", node="n1", device="gpu:0"),
        make_gpu("other", uuid="GPU-2", node="n1", device="gpu:1", health=COOL),
    )
    (card,) = health.cards
    (heat,) = card.symptoms
    assert (card.uuid, card.node, card.device, card.runs) == ("GPU-1", "n2", "gpu:3", 3)
    assert (heat.symptom, heat.assessed, heat.amount) == (Symptom.HEAT_SLOWED, 2, 120.0)
    assert [run.id for run in heat.runs] == ["early", "late"]
    assert card.max_temperature_celsius == 91.0
    assert health.healthy == 1


def test_rows_remapped_before_the_first_run_say_nothing() -> None:
    """Only a rise from run to run is a symptom."""
    old = [make_gpu(f"r{place}", uuid="GPU-1", health=GpuHealth(remapped_rows=5)) for place in range(2)]
    new = [
        make_gpu("s0", uuid="GPU-2", health=GpuHealth(remapped_rows=0)),
        make_gpu("s1", uuid="GPU-2", started="2026-10-06T12:00", health=GpuHealth(remapped_rows=2)),
    ]
    (card,) = assess(*old, *new).cards
    assert (card.uuid, card.symptoms[0].symptom, card.symptoms[0].amount) == ("GPU-2", Symptom.REMAPPED_ROWS, 2.0)


def test_cards_that_cannot_be_told_apart_are_counted() -> None:
    """Without a uuid the node and the number do; without either the time is stated."""
    health = assess(
        make_gpu("a", node="n1", health=HOT), make_gpu("b", node="n1", health=HOT), make_gpu("c", health=HOT)
    )
    assert [(card.uuid, card.node, card.runs) for card in health.cards] == [(None, "n1", 2)]
    assert health.unidentified_gpu_seconds == 2 * HOUR
    assert assess(make_gpu("a", uuid="GPU-1")).not_assessed == 1

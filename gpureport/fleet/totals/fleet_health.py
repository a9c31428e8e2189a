"""The health of each GPU over all of its runs: which one to take out."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING

from gpureport.fleet.fleet_report import CardHealth, CardVerdict, FleetHealth, Symptom, SymptomCount
from gpureport.fleet.gpu_summary import GpuHealth, HealthCheck
from gpureport.fleet.totals.priced_gpu import PricedGpu

if TYPE_CHECKING:
    from gpureport.recording import Card

_SEVERAL = 2
"""Runs from which a symptom is no accident (pragmatic)."""
_MOST_OF_THEM = 0.5
"""Share of the runs that could show a symptom from which it stays (pragmatic)."""
_SYMPTOMS = list(Symptom)
_VERDICTS = list(CardVerdict)
_LASTING = {Symptom.HARDWARE_SLOWED, Symptom.HEAT_SLOWED, Symptom.SLOW_LINK}
"""Symptoms by which a card is taken out where most of its runs show them."""

_AMOUNTS: dict[Symptom, Callable[[GpuHealth], float | None]] = {
    Symptom.GPU_LOST: lambda health: _read_check(health.gpu_lost),
    Symptom.ECC_UNCORRECTED: lambda health: health.ecc_uncorrected,
    Symptom.HARDWARE_SLOWED: lambda health: health.hardware_slowed_seconds,
    Symptom.HEAT_SLOWED: lambda health: health.heat_slowed_seconds,
    Symptom.SLOW_LINK: lambda health: _read_check(health.slow_link),
    Symptom.ECC_CORRECTED: lambda health: health.ecc_corrected,
}
"""What a run says of each symptom: an amount above 0 shows it, None does not assess it."""
_WITHOUT_AMOUNT = {Symptom.GPU_LOST, Symptom.SLOW_LINK}


def _read_check(check: HealthCheck) -> float | None:
    return None if check is HealthCheck.NOT_ASSESSED else float(check is HealthCheck.FOUND)


def assess_health(gpus: Sequence[PricedGpu]) -> FleetHealth:
    """Return which GPUs are sick."""
    cards: defaultdict[Card, list[PricedGpu]] = defaultdict(list)
    unidentified = []
    for gpu in sorted(gpus, key=_by_time):
        identity = gpu.summary.card
        if identity is None:
            unidentified.append(gpu.gpu_seconds)
        else:
            cards[identity].append(gpu)
    assessed = [_assess_card(own) for own in cards.values()]
    verdicts = [card.verdict for card in assessed]
    return FleetHealth(
        cards=tuple(sorted((each for each in assessed if each.symptoms), key=_gravity)),
        healthy=verdicts.count(CardVerdict.HEALTHY),
        not_assessed=verdicts.count(CardVerdict.NOT_ASSESSED),
        unidentified_gpu_seconds=fsum(unidentified),
    )


def _by_time(gpu: PricedGpu) -> tuple[int, str]:
    return gpu.summary.started or 0, gpu.summary.run_id


def _gravity(card: CardHealth) -> tuple[int, int, int, str, str, str]:
    worst = card.symptoms[0]
    place = (card.uuid or "", card.node or "", card.device)
    return _VERDICTS.index(card.verdict), _SYMPTOMS.index(worst.symptom), -len(worst.runs), *place


def _assess_card(gpus: Sequence[PricedGpu]) -> CardHealth:
    last = gpus[-1].summary
    found = (*(_count_symptom(gpus, symptom) for symptom in _AMOUNTS), _count_remapped_rows(gpus))
    shown = sorted((each for each in found if each.runs), key=lambda each: _SYMPTOMS.index(each.symptom))
    temperatures = [gpu.summary.health.max_temperature_celsius for gpu in gpus]
    is_assessed = any(each.assessed for each in found)
    verdict = CardVerdict.HEALTHY if is_assessed else CardVerdict.NOT_ASSESSED
    return CardHealth(
        uuid=last.uuid,
        model=last.model,
        node=last.node,
        device=last.local_device,
        runs=len({gpu.summary.run_id for gpu in gpus}),
        gpu_seconds=fsum(gpu.gpu_seconds for gpu in gpus),
        max_temperature_celsius=max((value for value in temperatures if value is not None), default=None),
        symptoms=tuple(shown),
        verdict=_judge_symptoms(shown) if shown else verdict,
    )


def _count_symptom(gpus: Iterable[PricedGpu], symptom: Symptom) -> SymptomCount:
    amounts = [(gpu, _AMOUNTS[symptom](gpu.summary.health)) for gpu in gpus]
    known = [(gpu, amount) for gpu, amount in amounts if amount is not None]
    return SymptomCount(
        symptom=symptom,
        runs=tuple(gpu.run for gpu, amount in known if amount > 0),
        assessed=len(known),
        amount=None if symptom in _WITHOUT_AMOUNT else fsum(amount for _, amount in known),
    )


def _count_remapped_rows(gpus: Iterable[PricedGpu]) -> SymptomCount:
    """Return the rows remapped from run to run, not those from before the first."""
    known = [(gpu, rows) for gpu in gpus if (rows := gpu.summary.health.remapped_rows) is not None]
    rises = [(later, more - fewer) for (_, fewer), (later, more) in pairwise(known) if more > fewer]
    return SymptomCount(
        symptom=Symptom.REMAPPED_ROWS,
        runs=tuple(gpu.run for gpu, _ in rises),
        assessed=len(known),
        amount=float(sum(rise for _, rise in rises)),
    )


def _judge_symptoms(shown: Iterable[SymptomCount]) -> CardVerdict:
    """Return whether to take a card out: for a grave error, a second loss, or a lasting symptom."""
    for each in shown:
        is_frequent = len(each.runs) >= _SEVERAL
        is_lasting = is_frequent and len(each.runs) >= _MOST_OF_THEM * each.assessed
        if (
            each.symptom is Symptom.ECC_UNCORRECTED
            or (each.symptom is Symptom.GPU_LOST and is_frequent)
            or (each.symptom in _LASTING and is_lasting)
        ):
            return CardVerdict.PULL
    return CardVerdict.WATCH

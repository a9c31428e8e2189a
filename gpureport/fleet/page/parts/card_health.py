"""Which GPU is sick: those to pull or watch and why, and how many are healthy or not assessed."""

from collections.abc import Callable, Mapping

from gpureport.fleet.fleet_report import CardHealth, CardVerdict, FleetHealth, Symptom, SymptomCount
from gpureport.fleet.page.amounts import Amounts
from gpureport.fleet.page.class_words import shorten_name
from gpureport.fleet.page.page_model import PagePart
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display

_MOST_ROWS = 20
_UUID = 12
"""Letters of a uuid that tell GPUs apart: `GPU-5e0f1106`."""

_SHORTEST_SECONDS = 0.5


def _count(noun: str) -> Callable[[float], str]:
    return lambda amount: display.plural(round(amount), noun)


_WORDS: Mapping[Symptom, tuple[str, Callable[[float], str]]] = {
    Symptom.GPU_LOST: ("stopped responding", lambda _: "stopped responding"),
    Symptom.ECC_UNCORRECTED: ("uncorrectable memory errors", _count("uncorrectable memory error")),
    Symptom.REMAPPED_ROWS: (
        "memory rows remapped",
        lambda rows: f"{display.plural(round(rows), 'memory row')} remapped",
    ),
    Symptom.HARDWARE_SLOWED: ("slowed by hardware", lambda time: f"slowed by hardware for {display.duration(time)}"),
    Symptom.HEAT_SLOWED: ("slowed by heat", lambda time: f"slowed by heat for {display.duration(time)}"),
    Symptom.SLOW_LINK: ("slow PCIe link", lambda _: "slow PCIe link"),
    Symptom.ECC_CORRECTED: ("corrected memory errors", _count("corrected memory error")),
}
"""What a symptom is called without its amount, and with it."""

_DO = {CardVerdict.PULL: "Pull", CardVerdict.WATCH: "Watch"}


def build_health_part(health: FleetHealth, amounts: Amounts) -> PagePart:
    """Return the GPUs to pull and to watch, the gravest first."""
    shown = [card for card in health.cards if card.verdict in _DO][:_MOST_ROWS]
    return PagePart(
        id="health",
        title="GPUs to pull or watch",
        line=_describe_health(health),
        is_open=bool(shown),
        table=_build_table(shown, amounts) if shown else None,
        notes=tuple(filter(None, (_describe_hidden(health, len(shown)), _describe_unidentified(health, amounts)))),
    )


def _describe_health(health: FleetHealth) -> str:
    """Return how many GPUs are to be pulled and watched, and how many are healthy or not assessed."""
    pulled, watched = (
        sum(card.verdict is verdict for card in health.cards) for verdict in (CardVerdict.PULL, CardVerdict.WATCH)
    )
    do = [
        f"pull {display.integer(pulled)}" if pulled else "",
        f"watch {display.integer(watched)}" if watched else "",
    ]
    counts = [
        f"{display.integer(health.healthy)} show no symptom" if health.healthy else "",
        f"{display.integer(health.not_assessed)} not assessed" if health.not_assessed else "",
    ]
    named = [", ".join(filter(None, do)), ", ".join(filter(None, counts))]
    return "; ".join(filter(None, named)) or "no GPU could be followed"


def _build_table(cards: list[CardHealth], amounts: Amounts) -> Table:
    return Table(
        columns=("GPU", "Do", "Seen", "Hottest", "Runs", amounts.unit),
        numeric=(False, False, True, True, True),
        rows=tuple(
            Row(
                head=Cell(text=name_card(card), small=_describe_card(card)),
                cells=(
                    Cell(text=_DO[card.verdict], flagged=card.verdict is CardVerdict.PULL),
                    Cell(text=_list_symptoms(card)),
                    Cell(text=display.or_not_recorded(card.max_temperature_celsius, display.temperature)),
                    Cell(text=display.integer(card.runs)),
                    Cell(text=amounts.format_time(card.gpu_seconds)),
                ),
            )
            for card in cards
        ),
    )


def name_card(card: CardHealth) -> str:
    """Return a GPU by its node, else the begin of its uuid, and its number."""
    number = card.device.rpartition("/")[2].replace("gpu:", "GPU ")
    place = card.node or (card.uuid or "")[:_UUID]
    return ", ".join(shorten_name(part) for part in (place, number) if part)


def _describe_card(card: CardHealth) -> str:
    return " · ".join(display.clean(part) for part in (card.uuid or "no uuid recorded", card.model or "") if part)


def _list_symptoms(card: CardHealth) -> str:
    said = "; ".join(map(describe_symptom, card.symptoms))
    return f"{said[:1].upper()}{said[1:]}"


def describe_symptom(count: SymptomCount) -> str:
    """Return a symptom with its amount and its runs: `slowed by heat for 3 h in 5 of 14 runs`."""
    bare, with_amount = _WORDS[count.symptom]
    words = bare if count.amount is None or count.amount < _SHORTEST_SECONDS else with_amount(count.amount)
    runs = len(count.runs)
    of = f"{display.integer(runs)} of {display.plural(max(count.assessed, runs), 'run')}"
    return f"{words} in {of}"


def _describe_hidden(health: FleetHealth, shown: int) -> str:
    hidden = sum(card.verdict in _DO for card in health.cards) - shown
    return f"{display.plural(hidden, 'more GPU')} to watch or pull: the JSON names all." if hidden else ""


def _describe_unidentified(health: FleetHealth, amounts: Amounts) -> str:
    seconds = health.unidentified_gpu_seconds
    if not seconds:
        return ""
    time = amounts.format_time_and_unit(seconds)
    return f"{time} ran on GPUs without a recorded uuid or node, so these can't be followed from run to run."

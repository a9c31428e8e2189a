"""The fleet page as text: headline, key figures, bars by class, best savings, and other sections."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor

from gpureport import __version__
from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import NOTABLE, measure_pauses_ratio
from gpureport.comparison.gains import NOTABLE_RATIO, measure_excessive_short_pauses
from gpureport.fleet import page_words as words
from gpureport.fleet.cards import PULL, WATCH, Facts
from gpureport.fleet.page_parts import PagePart, list_parts
from gpureport.fleet.totals import LOST
from gpureport.report.charts.elements import place_ticks
from gpureport.report.model.head import Action, Tile, Verdict
from gpureport.report.model.pictures import SpentBar, TimeSegment, TimeSpent
from gpureport.report.sections.head.loss_sentence import LOSSES
from gpureport.report.sections.head.recording_doubts import UNTIMED
from gpureport.report.sections.time_spent import build_segments, describe_pauses, list_legend, sort_classes
from gpureport.report.wording import display, terms
from gpureport.report.wording.words import choose_headline

HEADING = "What would save the most"
_OPEN = 3
_UNKNOWN = 0.05
"""Minimum share of GPU time without data at which the headline states the observed time."""
_FEW, _MANY = 0.25, 3
"""If at most this share of `_MANY` or more runs causes half the loss, the headline says so."""
_NEGLIGIBLE, _MUCH = 0.002, 0.03
"""Share of GPU time below which a segment is too small to see, and minimum share for a loss to be flagged."""
_TITLE = 80
_LOSSES = LOSSES | {"throttled": "slowed clocks"}
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    """The page. `ended`, the date of its files, is the time of the last sample in seconds since 1970."""

    title: str
    subtitle: str
    version: str
    command: str
    ended: int
    verdict: Verdict
    tiles: tuple[Tile, ...]
    spent: TimeSpent | None
    actions: tuple[Action, ...]
    parts: tuple[PagePart, ...]

    @property
    def quiet_line(self) -> str:
        return self.subtitle


def build_page(report: Facts, command: str) -> FleetPage:
    amounts, (length, period) = words.choose_amounts(report), words.describe_period(report)
    parts = [*list_parts(report, amounts, command, _OPEN)]
    return FleetPage(
        title=", ".join(filter(None, ("GPU fleet", period))),
        subtitle=" \N{MIDDLE DOT} ".join(filter(None, _list_read(report, period))),
        version=__version__,
        command=display.clean(command),
        ended=(report["ended"] or 0) // 1_000_000,
        verdict=Verdict(sentence=_write_headline(report, amounts, length), details=tuple(_write_lead(report, amounts))),
        tiles=tuple(_list_tiles(report, amounts)),
        spent=_build_bars(report, amounts),
        actions=tuple(_build_action(each, amounts) for each in report["savings"][:_OPEN]),
        parts=tuple(sorted(parts, key=lambda part: not part.is_open)),
    )


def _list_read(report: Facts, period: str) -> Iterator[str]:
    yield display.shorten(display.clean(report["selection"]), _TITLE) or "all runs"
    yield display.plural(report["use"]["runs"], "run")
    yield display.plural(report["gpus"], "GPU") if report["gpus"] is not None else ""
    yield display.plural(report["nodes"], "node") if report["nodes"] else "no node recorded"
    known = report["use"]["gpu_seconds"] - report["use"]["unknown_gpu_seconds"]
    computing = sum(each["gpu_seconds"] for each in report["classes"] if each["name"] == "computing")
    # rounded down, so that it is never 100% despite lost time
    yield f"{floor(100 * computing / known + 1e-4)}% computing" if known > 0 else ""
    yield period


def _sort_losses(report: Facts) -> list[Facts]:
    lost = [each for each in report["classes"] if each["name"] in LOST]
    return sorted(lost, key=lambda each: -float(each["gpu_seconds"]))


def _write_headline(report: Facts, amounts: words.Amounts, length: str) -> str:
    use = report["use"]
    held, lost, unknown = (use[name] for name in ("gpu_seconds", "lost_gpu_seconds", "unknown_gpu_seconds"))
    if not held:
        return f"No GPU time was recorded in {display.plural(use['runs'] + len(report['failed']), 'run')}"
    whole = f"{amounts.format_time(held)} {amounts.long_unit}"
    if unknown >= held * (1 - NOTABLE_RATIO):
        energy = f", which used {display.energy(report['energy_joules'])}" if report["energy_joules"] else ""
        return f"No utilisation was recorded in {whole}{energy}"
    period = f" {length}".rstrip()
    pauses = measure_excessive_short_pauses({each["name"]: each["gpu_seconds"] for each in report["classes"]})
    if lost < held * NOTABLE_RATIO and pauses is not None:
        return f"The loss in {whole} is not known: short pauses took {display.percent(pauses)}"
    if lost < held * NOTABLE_RATIO:
        return choose_headline([f"Hardly any of {whole} lost{when}" for when in (period, "")])
    least = "At least " if pauses is not None else ""
    if unknown >= held * _UNKNOWN:
        whole = f"the {amounts.format_time(held - unknown)} {amounts.long_unit} observed"
    start = f"{least}{display.percent(use['lost_ratio'])} of {whole} lost"
    money = f", {amounts.format_money(use['lost_cost'])}" if use["lost_cost"] is not None and amounts.currency else ""
    places = [*_list_culprits(report), ""]
    return choose_headline([f"{start}{when}{money}{where}" for where in places for when in (period, "")])


def _list_culprits(report: Facts) -> Iterator[str]:
    runs, half = report["use"]["runs"], report["half_lost_in"]
    if 0 < half <= max(runs * _FEW, 1) and runs >= _MANY:
        where = f"; half in {display.plural(half, 'run')}"
        yield f"{where}, mainly {_LOSSES[report['half_lost_class']]}"
        yield where
    else:
        yield from (f", mainly {_LOSSES[loss['name']]}" for loss in _sort_losses(report)[:1])


def _write_lead(report: Facts, amounts: words.Amounts) -> Iterator[str]:
    if month := report["month"]:
        hours = replace(amounts, unit="GPU-h", size=3600.0)
        lost = hours.format_both(month["lost_gpu_seconds"], month["lost_cost"])
        yield f"At this rate, {hours.format_time(month['gpu_seconds'])} GPU-hours per month mean a loss of {lost}."
    if doubts := "; ".join(_list_doubts(report, amounts)):
        yield f"{doubts[:1].upper()}{doubts[1:]}."
    pulled = words.count_cards(report["health"], PULL)
    pull = f"pull {display.plural(pulled, 'GPU')}" if pulled else ""
    for best in report["savings"][:1]:
        step, gain = display.lower_first(words.shorten_name(best["title"])), words.describe_gain(best, amounts)
        yield f"First: {step}, {gain}{pull and f'; then {pull}'}."
    if pull and not report["savings"]:
        yield f"First: {pull}."


def _list_doubts(report: Facts, amounts: words.Amounts) -> Iterator[str]:
    parts = [(report["failed"], "that failed"), (report["without_gpu"], "without a GPU")]
    if named := [f"{display.plural(len(runs), 'run')} {why}" for runs, why in parts if runs]:
        yield f"left out: {display.join_words(named)}"
    if rejected := report["mostly_rejected_runs"]:
        yield f"most lines of {display.plural(rejected, 'run')} were left out: if they have no timestamps, {UNTIMED}"
    whole, unknown = report["use"]["gpu_seconds"], report["use"]["unknown_gpu_seconds"]
    if whole and unknown >= whole * NOTABLE_RATIO:
        yield f"{display.percent(unknown / whole)} of the GPU time has no data"
    ratio = measure_pauses_ratio({each["name"]: each["gpu_seconds"] for each in report["classes"]})
    if report["pausing_runs"] and ratio >= NOTABLE:
        longest = words.shorten_name(report["pausing_runs"][0]["name"])
        where = f" (the most in {longest})" if report["use"]["runs"] > 1 else ""
        yield f"short pauses took {display.percent(ratio)} of the observed time{where}; some may be waits"
    for by in report["groupings"][:1]:
        word = display.lower_first(words.name_label(by["label"]))
        unnamed = sum(group["use"]["gpu_seconds"] for group in by["groups"] if group["name"] is None)
        if [group["name"] for group in by["groups"]] == [None] and by["rest"] is None:
            yield f"no run specifies its {word}"
        elif whole and unnamed >= whole * NOTABLE_RATIO:
            yield f"{display.percent(unnamed / whole)} of the GPU time has no {word}"
    if report["overlapping_gpu_seconds"]:
        yield f"{amounts.format_both(report['overlapping_gpu_seconds'])} may be counted twice"


def _list_tiles(report: Facts, amounts: words.Amounts) -> Iterator[Tile]:
    use, health, gpus = report["use"], report["health"], report["gpus"]
    share = words.format_lost_share(use)
    lost = "" if share == display.NOT_RECORDED else amounts.format_both(use["lost_gpu_seconds"], use["lost_cost"])
    yield Tile(label="GPU time lost", value=share, context=lost)
    cost = f"{amounts.format_money(use['cost'])}. " if use["cost"] is not None else ""
    on = f" on {display.plural(gpus, 'GPU')}" if gpus is not None else ""
    where = f" in {display.plural(report['nodes'], 'node')}" if report["nodes"] else ""
    yield Tile(
        label="Total GPU time",
        value=amounts.format_time(use["gpu_seconds"]),
        unit=amounts.unit,
        context=f"{cost}{display.plural(use['runs'], 'run')}{on}{where}",
    )
    best, gain = "none found", "No finding calls for a change."
    for saving in sorted(report["savings"], key=words.saves_nothing)[:1]:
        best = words.UNKNOWN if words.saves_nothing(saving) else words.shorten_name(saving["title"])
        gain = display.raise_first(words.describe_gain(saving, amounts))
    yield Tile(label="Would save the most", value=best, context=gain)
    is_assessed = bool(health["cards"] or health["healthy"])
    counts = {"can be tracked": 0 if gpus else health["identified_gpus"], "to watch": words.count_cards(health, WATCH)}
    counts |= {"healthy": health["healthy"], "not assessed": health["not_assessed"]}
    yield Tile(
        label="GPUs to pull",
        value=display.integer(words.count_cards(health, PULL)) if is_assessed else "not assessed",
        unit=f"of {display.integer(gpus)}" if is_assessed and gpus else "",
        context=", ".join(f"{display.integer(count)} {what}" for what, count in counts.items() if count),
    )


def _build_bars(report: Facts, amounts: words.Amounts) -> TimeSpent | None:
    use = report["use"]
    whole, end = use["gpu_seconds"], use["gpu_seconds"] / amounts.size
    seen = whole - use["unknown_gpu_seconds"] or whole
    if not whole:
        return None
    shown = {each["name"]: each for each in report["classes"] if each["name"] != "no_job"}
    losses = _sort_losses(report)
    others = [shown[name] for name in sort_classes(shown) if shown[name] not in losses]
    scaled = {name: each["gpu_seconds"] / amounts.size for name, each in shown.items()}
    share = words.format_lost_share(use)
    bars = [
        SpentBar(
            label="All runs",
            segments=build_segments(scaled, lambda amount: display.percent(amount * amounts.size / whole), {}),
            total=amounts.format_time(whole),
            note="use not recorded" if share == display.NOT_RECORDED else f"{share} lost",
            beside=amounts.format_money(use["cost"]) if amounts.is_priced else "",
        )
    ]
    for place, each in enumerate([*losses, *others]):
        name, seconds = each["name"], each["gpu_seconds"]
        meaning = " lost" if each in losses else " used" if name != "no_samples" else ""
        bars.append(
            SpentBar(
                label=terms.class_title(name),
                # the row names the class and gives the share, so its only segment needs no text
                segments=(TimeSegment(key=name, label="", value=scaled[name], text=""),),
                total=amounts.format_time(seconds),
                note=f"{display.percent(seconds / (seen if meaning else whole))}{meaning}",
                is_bad=place == 0 and bool(losses) and seconds >= _MUCH * whole,
                beside=amounts.format_money(each["cost"]) if amounts.is_priced else "",
            )
        )
    idle = use["no_job_gpu_seconds"]
    names = display.clean(", ".join(report["prices"]["unused_rates"]))
    unused = names and f"No GPU in these runs matches the rate for {names}."
    uncounted = f"Not counted: {amounts.format_both(idle)} in which no job ran." if idle else ""
    return TimeSpent(
        caption=f"{amounts.long_unit} of all jobs, then by class.{describe_pauses(bars[:1])}",
        columns=(amounts.unit, "Cost" if amounts.is_priced else ""),
        bars=tuple(bars),
        end=end,
        ticks=place_ticks(end, amounts.unit.removeprefix("GPU-")),
        legend=list_legend(bars[:1], {}, _NEGLIGIBLE * end),
        rest=" ".join(filter(None, (uncounted, words.explain_prices(report, amounts), unused))),
    )


def _build_action(saving: Facts, amounts: words.Amounts) -> Action:
    step = STEPS.get(saving["step"])
    how = _SENTENCE.split(step.do, maxsplit=1)[0] if step else ""
    worst = display.join_words(words.name_runs(saving["examples"]))
    return Action(
        title=words.shorten_name(saving["title"]),
        gain=display.raise_first(words.describe_gain(saving, amounts)),
        text=f"{step.title}: {display.lower_first(how)}" if step and step.title != saving["title"] else how,
        certainty=f"{terms.kind_title(saving['kinds'][0])}; worst in {worst}.",
    )

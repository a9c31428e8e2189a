"""The parts of the fleet page below its header: each has a table, bars or statements, and a summary line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from gpureport import __version__
from gpureport.fleet import page_words as words
from gpureport.fleet.cards import PULL, SYMPTOMS, WATCH, Facts
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.wording import display, terms

RUNS, WEEKS = "worst-runs", "weeks"
_MOST_ROWS, _MOST_STEPS, _MOST_WEEKS = 20, 30, 26
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
"""Matches a label that can be used unchanged in a URL."""
_ERROR, _UUID = 240, 12
"""Maximum length of an error message, and length of a shortened uuid (`GPU-5e0f1106`)."""
_SHORTEST_SECONDS, _NEARLY_ALL = 0.5, 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """A part below the header: `line` is its summary, and `bars` belong to the table rows."""

    id: str
    title: str
    line: str
    is_open: bool = False
    table: Table | None = None
    bars: tuple[tuple[TimeSegment, ...], ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()


def list_parts(report: Facts, amounts: words.Amounts, command: str, shown_steps: int) -> Iterator[PagePart]:
    yield from _list_groupings(report["groupings"], amounts)
    yield _build_health(report["health"], amounts)
    if len(report["weeks"]) > 1:
        yield _build_weeks(report, amounts)
    if report["worst_runs"]:
        yield _build_runs(report["worst_runs"], amounts)
    if report["savings"][shown_steps:]:
        yield _build_savings(report["savings"][shown_steps:], amounts)
    yield from _list_left_out(report, amounts)
    facts = tuple(_list_method(report, command))
    yield PagePart(id="method", title="Method", line="how the figures were computed", facts=facts)


def _hidden(hidden: int, what: str) -> tuple[str, ...]:
    return (f"{display.plural(hidden, f'more {what}')}: the JSON lists all.",) if hidden > 0 else ()


def _tabulate(entries: Sequence[Facts], heads: Sequence[Cell], title: str, amounts: words.Amounts) -> Table:
    has_runs, priced = "is_lower_bound" not in entries[0], amounts.is_priced
    columns = [title, *["Cost lost"] * priced, f"Lost, {amounts.unit}", "Share lost", f"In all, {amounts.unit}"]
    is_partial = any(each["use"]["unknown_gpu_seconds"] for each in entries)
    columns += [*[f"No data, {amounts.unit}"] * is_partial, *["Runs"] * has_runs, "Largest loss"]
    rows: list[list[Cell | str]] = []
    for head, each in zip(heads, entries, strict=True):
        use, largest = each["use"], each["largest_loss"]
        share = words.format_lost_share(use, is_lower_bound=each.get("is_lower_bound", False))
        is_known = share != display.NOT_RECORDED
        cost = amounts.format_money(use["lost_cost"] if use["lost_gpu_seconds"] or not is_known else 0.0)
        lost = amounts.format_time(use["lost_gpu_seconds"]) if is_known else share
        most = (terms.class_title(largest["name"]) if largest else "nothing lost") if is_known else share
        whole, unseen = (amounts.format_time(use[name]) for name in ("gpu_seconds", "unknown_gpu_seconds"))
        runs = [display.integer(use["runs"])] * has_runs
        rows.append([head, *[cost] * priced, lost, share, whole, *[unseen] * is_partial, *runs, most])
    return build_table(columns, rows, in_words=["Largest loss"])


def _split_losses(entries: Sequence[Facts], amounts: words.Amounts) -> tuple[tuple[TimeSegment, ...], ...]:
    bars = []
    for each in entries:
        parts, largest = [], each["largest_loss"]
        if largest and each.get("groups", 1) == 1:
            name, rest = largest["name"], each["use"]["lost_gpu_seconds"] - largest["gpu_seconds"]
            # no class is called `other`, so it gets the default fill
            parts = [(name, terms.class_title(name), largest["gpu_seconds"]), ("other", "Other losses", rest)]
        bars.append(
            tuple(
                TimeSegment(key=key, label=label, value=seconds / amounts.size, text=amounts.format_time(seconds))
                for key, label, seconds in parts
                if seconds > 0
            )
        )
    return tuple(bars)


def _list_groupings(groupings: Sequence[Facts], amounts: words.Amounts) -> Iterator[PagePart]:
    named = [by for by in groupings if by["rest"] or any(group["name"] is not None for group in by["groups"])]
    for place, by in enumerate(named):
        title = words.name_label(by["label"])
        word = display.lower_first(title)
        entries = [*by["groups"], *([by["rest"]] if by["rest"] else [])]
        heads = [Cell(text=_name_group(each, word, is_rest=each is by["rest"])) for each in entries]
        count = sum(group["groups"] for group in entries if group["name"] is not None or group is by["rest"])
        yield PagePart(
            id=f"by-{by['label']}" if _PLAIN.fullmatch(by["label"]) else f"by-label-{place}",
            title=f"By {word}",
            line="; ".join(filter(None, (display.plural(count, word), _name_worst_group(by["groups"], word, amounts)))),
            is_open=place == 0,
            table=_tabulate(entries, heads, title, amounts),
            bars=_split_losses(entries, amounts),
        )
    if unnamed := [display.lower_first(words.name_label(by["label"])) for by in groupings if by not in named]:
        yield PagePart(
            id="unlabelled",
            title=f"By {display.join_words(unnamed)}",
            line="not recorded in any run",
            notes=("Label the runs with --labels TABLE, or with tags.",),
        )


def _name_group(group: Facts, word: str, *, is_rest: bool) -> str:
    if is_rest:
        return display.plural(group["groups"], f"other {word}")
    return f"No {word} recorded" if group["name"] is None else words.shorten_name(group["name"])


def _name_worst_group(groups: Sequence[Facts], word: str, amounts: words.Amounts) -> str:
    worst, seconds = groups[0]["name"], groups[0]["use"]["lost_gpu_seconds"]
    if len(groups) == 1 or not seconds:
        return ""
    name = "unlabelled runs" if worst is None else words.shorten_name(worst)
    return f"{f'{word} {name}' if name.isdigit() else name} lost most, {amounts.format_both(seconds)}"


def _build_runs(runs: Sequence[Facts], amounts: words.Amounts) -> PagePart:
    users = [each["user"] for each in runs]
    nobody = "no user recorded" if any(users) else ""
    small = [nobody if user is None else words.shorten_name(user) for user in users]
    names = zip(words.name_runs([each["run"] for each in runs]), small, strict=True)
    return PagePart(
        id=RUNS,
        title="Worst runs",
        line=f"the {len(runs)} that lost the most" if len(runs) > 1 else "the one that lost the most",
        is_open=True,
        table=_tabulate(runs, [Cell(text=name, small=user) for name, user in names], "Run", amounts),
        bars=_split_losses(runs, amounts),
    )


def _build_weeks(report: Facts, amounts: words.Amounts) -> PagePart:
    used = [week for week in report["weeks"] if week["use"]["runs"]]
    weeks = used[-_MOST_WEEKS:]
    days = [words.format_day(date.fromisoformat(week["monday"])) for week in weeks]
    whole = [place for place, week in enumerate(weeks) if not week["is_partial"]]
    line = f"{len(report['weeks'])} weeks"
    if len(whole) > 1:
        first, last = (words.format_lost_share(weeks[place]["use"]) for place in (whole[0], whole[-1]))
        line = f"{first} lost in the week of {days[whole[0]]}, {last} in the week of {days[whole[-1]]}"
    undated = report["undated_gpu_seconds"]
    dateless = (f"{amounts.format_both(undated)} have no date and are not in any week.",) if undated else ()
    empty = ("Weeks without a run are left out.",) if len(used) < len(report["weeks"]) else ()
    heads = [
        Cell(text=day, small="partial" if week["is_partial"] else "") for day, week in zip(days, weeks, strict=True)
    ]
    return PagePart(
        id=WEEKS,
        title="Week by week",
        line=line,
        is_open=True,
        table=_tabulate(weeks, heads, "Week of", amounts),
        bars=_split_losses(weeks, amounts),
        notes=(*_hidden(len(used) - len(weeks), "week"), *dateless, *empty),
    )


def _build_health(health: Facts, amounts: words.Amounts) -> PagePart:
    shown = health["cards"][:_MOST_ROWS]
    doing = [(word, words.count_cards(health, word)) for word in (PULL, WATCH)]
    others = ((health["healthy"], "show no symptoms"), (health["not_assessed"], "not assessed"))
    said = [
        ", ".join(f"{word} {display.integer(count)}" for word, count in doing if count),
        ", ".join(f"{display.integer(count)} {what}" for count, what in others if count),
    ]
    rows = (
        (
            _name_card(card),
            Cell(text=card["verdict"].capitalize(), flagged=card["verdict"] == PULL),
            display.raise_first("; ".join(map(_describe_symptom, card["symptoms"]))),
            display.or_not_recorded(card["max_temperature_celsius"], display.temperature),
            display.integer(card["runs"]),
            amounts.format_time(card["gpu_seconds"]),
        )
        for card in shown
    )
    unknown = health["unidentified_gpu_seconds"]
    lost = "were spent on GPUs without a recorded uuid or node, which cannot be tracked from run to run."
    more = _hidden(len(health["cards"]) - len(shown), "GPU")
    return PagePart(
        id="health",
        title="GPUs to pull or watch",
        line="; ".join(filter(None, said)) or "no GPU could be tracked",
        is_open=bool(shown),
        table=build_table(("GPU", "Do", "Seen", "Hottest", "Runs", amounts.unit), rows, in_words=["Do", "Seen"])
        if shown
        else None,
        notes=(*more, *((f"{amounts.format_both(unknown)} {lost}",) if unknown else ())),
    )


def _name_card(card: Facts) -> Cell:
    place = card["node"] or (card["uuid"] or "")[:_UUID] or card["symptoms"][0]["runs"][0]["name"]
    name = (words.shorten_name(part) for part in (place, card["device"].replace("gpu:", "GPU ")) if part)
    beside = (display.clean(part) for part in (card["uuid"] or "no uuid recorded", card["model"]) if part)
    return Cell(text=", ".join(name), small=" · ".join(beside))


def _describe_symptom(count: Facts) -> str:
    said, amount, runs = SYMPTOMS[count["symptom"]], count["amount"] or 0.0, len(count["runs"])
    if amount >= _SHORTEST_SECONDS and count["symptom"].endswith("_slowed"):
        said = f"{said} for {display.duration(amount)}"
    elif amount >= _SHORTEST_SECONDS:
        noun = "memory row" if count["symptom"] == "remapped_rows" else said.removesuffix("s")
        said = f"{display.plural(round(amount), noun)}{' remapped' * (noun == 'memory row')}"
    return f"{said} in {display.integer(runs)} of {display.plural(max(count['assessed'], runs), 'run')}"


def _build_savings(savings: Sequence[Facts], amounts: words.Amounts) -> PagePart:
    shown, priced = savings[:_MOST_STEPS], amounts.is_priced
    rows = (
        (
            words.shorten_name(each["title"]),
            *[amounts.format_money(each["cost"])] * priced,
            amounts.format_time(each["gpu_seconds"]),
            display.integer(each["runs"]),
            ", ".join(dict.fromkeys(terms.kind_title(kind) for kind in each["kinds"][:2])),
            ", ".join(words.name_runs(each["examples"])),
        )
        for each in shown
    )
    columns = ("What to do", *["Cost lost"] * priced, f"Lost, {amounts.unit}", "Runs", "Found", "Worst runs")
    once = "Each lost hour is counted for only one step, the most promising one, so the rows can be added up."
    return PagePart(
        id="savings",
        title="Other steps",
        line=display.plural(len(savings), "more step"),
        table=build_table(columns, rows, in_words=columns[-2:]),
        notes=(once, *_hidden(len(savings) - len(shown), "step")),
    )


def _list_left_out(report: Facts, amounts: words.Amounts) -> Iterator[PagePart]:
    failed, without, overlaps = (report[name] for name in ("failed", "without_gpu", "overlaps"))
    if failed:
        errors = (display.shorten(display.clean_sentence(each["error"]), _ERROR) for each in failed[:_MOST_ROWS])
        named = ([words.shorten_name(each["run"][key]) for key in ("name", "id")] for each in failed)
        heads = (Cell(text=name or own, small=own if name != own else "") for name, own in named)
        yield PagePart(
            id="failed",
            title="Failed runs",
            line=f"{display.plural(len(failed), 'run')} could not be read or analysed",
            table=build_table(("Run", "Why"), zip(heads, errors, strict=False), in_words=["Why"]),
            notes=_hidden(len(failed) - _MOST_ROWS, "run"),
        )
    if without:
        names = ", ".join(words.shorten_name(run["name"] or run["id"]) for run in without[:_MOST_ROWS])
        yield PagePart(
            id="without-gpu",
            title="Runs without a GPU",
            line=f"{display.plural(len(without), 'run')}, not included above",
            facts=(Fact(name="Runs", text=names),),
            notes=_hidden(len(without) - _MOST_ROWS, "run"),
        )
    if overlaps:
        cells = (
            (
                words.shorten_name(each["card"]),
                display.join_words(words.name_runs(each["runs"])),
                display.duration(each["seconds"]),
            )
            for each in overlaps
        )
        twice = amounts.format_both(report["overlapping_gpu_seconds"])
        yield PagePart(
            id="overlaps",
            title="Counted twice",
            line=f"{twice} in which two runs used the same GPU",
            table=build_table(("GPU", "Runs", "For"), cells, in_words=["Runs"]),
            notes=(
                "One run may be a copy of the other, or two jobs may share the GPU. The longest overlaps are listed.",
                "A GPU without a uuid is identified by its node and its index there.",
            ),
        )
    if checks := report["unassessed"]:
        whole = report["use"]["gpu_seconds"]
        figures = (
            (
                terms.kind_title(each["kind"]),
                display.percent(each["gpu_seconds"] / whole) if whole else display.NOT_RECORDED,
                amounts.format_time(each["gpu_seconds"]),
                display.integer(each["runs"]),
            )
            for each in checks
        )
        yield PagePart(
            id="not-assessed",
            title="Not assessed",
            line=f"{display.plural(len(checks), 'check')} not assessed in some runs",
            table=build_table(("Check", "Share of time", amounts.unit, "Runs"), figures),
            notes=("The report on a run shows what to record for each check.",),
        )


def _list_method(report: Facts, command: str) -> Iterator[Fact]:
    meanings, prices, joules = dict(terms.DEFINITIONS), report["prices"], report["energy_joules"]
    energy = ""
    if joules is not None:
        whole = report["use"]["gpu_seconds"]
        share = report["energy_gpu_seconds"] / whole if whole else 1.0
        part = "" if share > _NEARLY_ALL else f", recorded in {display.percent(share)} of the GPU time"
        energy = f"{display.energy(joules)}, for GPUs alone{part}"
    facts = {
        "Command": display.clean(command),
        "Version": f"gpureport {__version__}",
        "Runs": display.clean(report["selection"]),
        "Prices": prices["date"] and f"of {display.clean(prices['date'])}",
        "Energy": energy,
        "Times": "in UTC" if report["is_zoned"] else "local times of the recording machines",
        **{name: meanings[name] for name in ("GPU-hour", "GPU time lost")},
        "Would save": "The most that a step could save; each lost second is counted only for the best step.",
        "Health of a GPU": "GPUs are tracked from run to run by uuid or, without one, by node and index.",
    }
    yield from (Fact(name=name, text=text) for name, text in facts.items() if text)

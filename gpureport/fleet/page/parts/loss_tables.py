"""Who lost GPU time: tables of users, projects and the worst runs, each row with a bar."""

import re
from collections.abc import Iterator, Sequence

from gpureport.fleet.fleet_report import ClassTime, Group, Grouping, RunUse, TimeUse
from gpureport.fleet.page.amounts import Amounts, format_lost_share
from gpureport.fleet.page.class_words import (
    OTHER_LOSSES,
    name_label,
    name_largest_loss,
    shorten_name,
)
from gpureport.fleet.page.page_model import LossBars, PagePart
from gpureport.fleet.page.run_names import name_runs
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display, terms

_CAPTION = "Bars: GPU time lost, its largest class in colour."

_NO_LABEL = "Label the runs with --labels TABLE, or with tags."

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
"""A label that may be part of an address as it is."""

RUNS = "worst-runs"
"""Id of the part on the worst runs."""

MOST_ROWS = 20
"""Rows of a table of losses."""


def build_grouping_parts(groupings: Sequence[Grouping], amounts: Amounts) -> Iterator[PagePart]:
    """Yield the runs by each label, the first one open; labels that no run has share a part."""
    named = [by for by in groupings if _count_groups(by)]
    for place, by in enumerate(named):
        yield _build_grouping(by, amounts, place)
    unnamed = [display.lower_first(name_label(by.label)) for by in groupings if by not in named]
    if unnamed:
        yield PagePart(
            id="unlabelled",
            title=f"By {display.join_words(unnamed)}",
            line="not recorded in any run",
            notes=(_NO_LABEL,),
        )


def _count_groups(by: Grouping) -> int:
    """Return how many values the label has."""
    return sum(group.name is not None for group in by.groups) + (by.rest.groups if by.rest else 0)


def _build_grouping(by: Grouping, amounts: Amounts, place: int) -> PagePart:
    """Return the runs by one label: the worst groups, then all others; the first label is open."""
    title = name_label(by.label)
    word = display.lower_first(title)
    entries = [*by.groups, *([by.rest] if by.rest else [])]
    counted = display.plural(_count_groups(by), word)
    return PagePart(
        id=f"by-{by.label}" if _PLAIN.fullmatch(by.label) else f"by-label-{place}",
        title=f"By {word}",
        line="; ".join(filter(None, (counted, _name_worst_group(by, word, amounts)))),
        count=counted,
        is_open=place == 0,
        table=Table(
            columns=(title, *_columns(amounts, runs=True)),
            numeric=_numeric(amounts, runs=True),
            rows=tuple(
                Row(
                    head=_name_group(group, word, is_rest=group is by.rest),
                    cells=_cells(group.use, group.largest_loss, amounts, runs=True),
                )
                for group in entries
            ),
        ),
        caption=_CAPTION,
        bars=_build_bars(
            [(group.use, group.largest_loss) if group is not by.rest else None for group in entries], amounts
        ),
    )


def build_run_part(runs: Sequence[RunUse], amounts: Amounts) -> PagePart:
    """Return the runs that lost most."""
    shown = runs[:MOST_ROWS]
    names = name_runs([each.run for each in shown])
    return PagePart(
        id=RUNS,
        title="Worst runs",
        line=f"the {len(shown)} that lost most" if len(shown) > 1 else "the one that lost most",
        is_open=True,
        table=Table(
            columns=("Run", *_columns(amounts, runs=False)),
            numeric=_numeric(amounts, runs=False),
            rows=tuple(
                Row(
                    head=Cell(text=name, small=_name_user(each.user)),
                    cells=_cells(each.use, each.largest_loss, amounts, runs=False, is_lower_bound=each.is_lower_bound),
                )
                for name, each in zip(names, shown, strict=True)
            ),
        ),
        caption=_CAPTION,
        bars=_build_bars([(each.use, each.largest_loss) for each in shown], amounts),
    )


def _name_user(user: str | None) -> str:
    return "no user recorded" if user is None else shorten_name(user)


def _name_worst_group(by: Grouping, word: str, amounts: Amounts) -> str:
    """Return which group lost most; empty where there is one alone, or none lost anything."""
    worst = max(by.groups, key=lambda group: group.use.lost_gpu_seconds)
    if len(by.groups) < 2 or not worst.use.lost_gpu_seconds:  # noqa: PLR2004 - a worst one needs another
        return ""
    lost = amounts.format_time_and_unit(worst.use.lost_gpu_seconds)
    if worst.name is None:
        return f"runs that name none lost most, {lost}"
    name = shorten_name(worst.name)
    named = f"{word} {name}" if name.isdigit() else name
    return f"{named} lost most, {lost}"


def _name_group(group: Group, word: str, *, is_rest: bool) -> Cell:
    if is_rest:
        return Cell(text=display.plural(group.groups, f"other {word}"))
    return Cell(text=f"No {word} recorded" if group.name is None else shorten_name(group.name))


def _columns(amounts: Amounts, *, runs: bool) -> tuple[str, ...]:
    money = ("Cost lost",) if amounts.is_priced else ()
    return (
        f"Lost, {amounts.unit}",
        "Share lost",
        f"In all, {amounts.unit}",
        *money,
        *(("Runs",) if runs else ()),
        "Largest loss",
    )


def _numeric(amounts: Amounts, *, runs: bool) -> tuple[bool, ...]:
    return (*(True,) * (len(_columns(amounts, runs=runs)) - 1), False)


def _cells(
    use: TimeUse, loss: ClassTime | None, amounts: Amounts, *, runs: bool, is_lower_bound: bool = False
) -> tuple[Cell, ...]:
    share = format_lost_share(use, is_lower_bound=is_lower_bound)
    figures = (
        share if share == display.NOT_RECORDED else amounts.format_time(use.lost_gpu_seconds),
        share,
        amounts.format_time(use.gpu_seconds),
        *((amounts.format_lost_cost(use),) if amounts.is_priced else ()),
        *((display.integer(use.runs),) if runs else ()),
        share if share == display.NOT_RECORDED else name_largest_loss(loss),
    )
    return tuple(Cell(text=text) for text in figures)


def _build_bars(rows: Sequence[tuple[TimeUse, ClassTime | None] | None], amounts: Amounts) -> LossBars:
    """Return a bar a row; what stands for many has none, as it would dwarf the others."""
    lengths = [amounts.scale(row[0].lost_gpu_seconds) for row in rows if row]
    return LossBars(
        rows=tuple(_split_loss(*row, amounts) if row else () for row in rows),
        end=max(lengths, default=0.0),
    )


def _split_loss(use: TimeUse, loss: ClassTime | None, amounts: Amounts) -> tuple[TimeSegment, ...]:
    """Return the largest class, and all other losses as one."""
    if loss is None:
        return ()
    rest = max(use.lost_gpu_seconds - loss.gpu_seconds, 0.0)
    parts = ((loss.name, terms.class_title(loss.name), loss.gpu_seconds), (OTHER_LOSSES, "Other losses", rest))
    return tuple(
        TimeSegment(key=key, label=label, value=amounts.scale(seconds), text=amounts.format_time(seconds))
        for key, label, seconds in parts
        if seconds > 0
    )

"""Who lost GPU time: tables of users, projects and the like, and of the worst runs, each with a bar a row."""

from collections.abc import Sequence

from gpureport.fleet.fleet_report import ClassTime, Group, Grouping, RunUse, TimeUse
from gpureport.fleet.page.amounts import Amounts, format_lost_share
from gpureport.fleet.page.class_words import (
    OTHER_LOSSES,
    name_label,
    name_largest_loss,
    shorten_name,
)
from gpureport.fleet.page.page_model import LossBars, PagePart
from gpureport.report.model.pictures import TimeSegment
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display, terms

_CAPTION = "Bars: GPU time lost, its largest class in colour."

_NO_LABEL = "Name whose each run is with --labels TABLE, or with tags of the runs."

MOST_ROWS = 20
"""Rows of a table of losses."""


def build_grouping_part(by: Grouping, amounts: Amounts, *, is_open: bool) -> PagePart:
    """Return the runs by one label: the worst groups, then all others as one row."""
    title = name_label(by.label)
    word = display.lower_first(title)
    entries = [*by.groups, *([by.rest] if by.rest else [])]
    count = sum(group.groups for group in entries if group.name is not None or group is by.rest)
    return PagePart(
        id=f"by-{'-'.join(word.split())}",
        title=f"By {word}",
        line=_describe_groups(by, count, word, amounts),
        is_open=is_open and count > 0,
        notes=() if count else (_NO_LABEL,),
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
    return PagePart(
        id="worst-runs",
        title="Worst runs",
        line=f"the {len(shown)} that lost most" if len(shown) > 1 else "the one that lost most",
        table=Table(
            columns=("Run", *_columns(amounts, runs=False)),
            numeric=_numeric(amounts, runs=False),
            rows=tuple(
                Row(
                    head=Cell(text=shorten_name(each.run.name), small=_name_user(each.user)),
                    cells=_cells(each.use, each.largest_loss, amounts, runs=False),
                )
                for each in shown
            ),
        ),
        caption=_CAPTION,
        bars=_build_bars([(each.use, each.largest_loss) for each in shown], amounts),
    )


def _name_user(user: str | None) -> str:
    return "no user recorded" if user is None else shorten_name(user)


def _describe_groups(by: Grouping, count: int, word: str, amounts: Amounts) -> str:
    """Return how many groups there are, and the worst of them."""
    counted = display.plural(count, word) if count else f"no {word} recorded"
    named = [group for group in by.groups if group.name is not None and group.use.lost_gpu_seconds > 0]
    if len(by.groups) < 2 or not named:  # noqa: PLR2004 - a worst one needs another
        return counted
    lost = amounts.format_time_and_unit(named[0].use.lost_gpu_seconds)
    return f"{counted}; {shorten_name(named[0].name or '')} lost most, {lost}"


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


def _cells(use: TimeUse, loss: ClassTime | None, amounts: Amounts, *, runs: bool) -> tuple[Cell, ...]:
    figures = (
        amounts.format_time(use.lost_gpu_seconds),
        format_lost_share(use),
        amounts.format_time(use.gpu_seconds),
        *((amounts.format_money(use.lost_cost),) if amounts.is_priced else ()),
        *((display.integer(use.runs),) if runs else ()),
        name_largest_loss(loss),
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

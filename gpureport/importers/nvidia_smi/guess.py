"""What the columns of a log without a header are, guessed from its first rows, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray, strings
from gpureport.importers.delimited import stamps
from gpureport.importers.delimited.layout import STAMP
from gpureport.importers.nvidia_smi import fields, ticks
from gpureport.importers.nvidia_smi.guessing import bare, clocks, grammar, memory, percent, plain, power
from gpureport.importers.nvidia_smi.guessing.facts import UNITS, Facts, held, numbers
from gpureport.importers.nvidia_smi.guessing.lines import headerless
from gpureport.importers.nvidia_smi.guessing.said import (
    ORDER,
    Confidence,
    Names,
    Said,
    at_most,
    doubtful,
    listed,
    unnamed,
)
from gpureport.importers.nvidia_smi.tick_positions import TickPositions
from gpureport.metrics import BY_NAME

__all__ = ["Guess", "guess", "headerless"]

_ATTRIBUTES = ("uuid", "pci.bus_id")
_RIVALS = {"%", "MHz", bare.PLAIN}
"""Kinds that numbers without a unit are mistaken for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The columns of a log as its rows suggest them.

    Attributes:
        headings: one a column: nvidia-smi's name with its unit, `column_3` for one that cannot be named.
        confidence: that of the least sure name; low where none is a metric.
        confidences: one a column; high for one that is not named at all.
        reasons: one a column, in words.
        ambiguous: what cannot be told apart and matters, in words; empty when nothing.
    """

    headings: tuple[str, ...]
    confidence: Confidence
    confidences: tuple[Confidence, ...]
    reasons: tuple[str, ...]
    ambiguous: tuple[str, ...] = ()


def guess(rows: Sequence[Sequence[str]]) -> Guess:
    """Return what the columns of a log are.

    High confidence is for what the cells leave no choice about, medium for what is usual and not contradicted,
    low for a choice between columns that matter.

    Args:
        rows: the stripped cells of rows at the head of the log, all of one length; some thousand are enough.
    """
    columns = [list(cells) for cells in zip(*rows, strict=True)]
    names: Names = {}
    for position, cells in enumerate(columns):
        said = grammar.name(held(cells))
        if said is not None:
            names[position] = said
    gpus = _gpus(columns, names)
    found = [numbers(place, cells, gpus) for place, cells in enumerate(columns) if place not in names]
    facts = [column for column in found if column is not None]
    units = {column.position: column.unit for column in facts}
    if any(unit in UNITS.values() for unit in units.values()):
        names |= _by_unit(facts, units)
    else:
        names |= _without_units(facts)
    return _result(_once(names), [units.get(place, "") for place in range(len(columns))])


def _by_unit(facts: list[Facts], units: dict[int, str]) -> Names:
    """Return what columns are whose units are known; what has none is a plain number."""

    def of(unit: str) -> list[Facts]:
        return [column for column in facts if units[column.position] == unit]

    names = percent.name(of("%")) | power.name(of("W")) if of("W") else percent.name(of("%"))
    if of("MHz"):
        names |= clocks.name(of("MHz"))
    if of("MiB"):
        names |= memory.name(of("MiB"), _load(facts, names))
    return names | plain.name(of(""))


def _without_units(facts: list[Facts]) -> Names:
    """Return what columns are in a log without units, never surer than the units they are taken to have."""
    kinds = bare.kinds(facts)
    known = [c for c in facts if kinds[c.position] not in {bare.UNKNOWN, bare.DOUBTFUL}]
    names = _by_unit(known, {place: "" if kind == bare.PLAIN else kind for place, kind in kinds.items()})
    names = {place: at_most(said, "medium") for place, said in names.items()}
    unclear = [column for column in facts if kinds[column.position] == bare.DOUBTFUL]
    if not unclear:
        return names
    # one of them may be what another is taken for
    names = {place: at_most(said, "low") if kinds[place] in _RIVALS else said for place, said in names.items()}
    places = listed(column.position for column in unclear)
    doubt = f"{places}: a utilization, a temperature or a clock; without units nothing tells which"
    return names | {column.position: doubtful("", "whole numbers", doubt) for column in unclear}


def _load(facts: list[Facts], names: Names) -> FloatArray | None:
    """Return the utilisation of the GPU, where it is known."""
    for column in facts:
        said = names.get(column.position)
        if said is not None and said.field == "utilization.gpu" and said.confidence != "low":
            return column.values
    return None


def _gpus(columns: list[list[str]], names: Names) -> IntArray:
    """Return which GPU each row belongs to, as codes: by id, by an index that cycles, or by its place in a tick."""
    rows = len(columns[0]) if columns else 0
    alone = np.zeros(rows, dtype=np.int64)
    for field in _ATTRIBUTES:
        for place, said in names.items():
            if said.field == field:
                return np.unique(np.array(columns[place]), return_inverse=True)[1].astype(np.int64)
    for place, cells in enumerate(columns):
        column = numbers(place, cells, alone)
        if column is not None and not column.unit and plain.cycles(column):
            return column.values.astype(np.int64)
    stamp = next((place for place, said in names.items() if said.field == STAMP), None)
    if stamp is None:
        return alone
    times, good = stamps.parse(strings(columns[stamp]))
    shown = ticks.infer(times) if good.all() else None
    if shown is None or shown.gap is None:
        return alone
    positions = TickPositions(shown)
    return np.concatenate([positions.assign(times), positions.finish()])


def _once(names: Names) -> Names:
    """Return the names without those that a column before has already."""
    taken: set[str] = set()
    for place in sorted(names):
        field = names[place].field
        if field and field in taken:
            names[place] = unnamed(f"as {field}, which a column before is")
        taken.add(field)
    return names


def _result(names: Names, units: list[str]) -> Guess:
    said = [names.get(place, unnamed("words that tell nothing")) for place in range(len(units))]
    ambiguous = tuple(dict.fromkeys(entry.doubt for entry in said if entry.doubt))
    named = [entry.confidence for entry in said if entry.field]
    lowest: Confidence = min(named, key=ORDER.index, default="low")
    return Guess(
        headings=tuple(_heading(place, entry, units[place]) for place, entry in enumerate(said)),
        confidence="low" if ambiguous or not _tells(said) else lowest,
        confidences=tuple(entry.confidence for entry in said),
        reasons=tuple(entry.reason for entry in said),
        ambiguous=ambiguous,
    )


def _tells(said: list[Said]) -> bool:
    """Return whether a column is a metric of a GPU."""
    targets = [fields.target(entry.field) for entry in said if entry.field]
    return any(target in BY_NAME or target == fields.CLOCK_EVENTS for target in targets)


def _heading(place: int, said: Said, unit: str) -> str:
    if not said.field:
        return f"column_{place + 1}"
    return f"{said.field} [{unit}]" if unit else said.field

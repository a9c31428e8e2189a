"""Named statements of several runs, each said once with the runs that it holds for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpureport.report.model.report_content import RunQuality
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import numbered_labels


class Labelled(Protocol):
    """What is said of one run, or of one link between two steps."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Named statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A statement, and the runs that it holds for in words; empty where it holds for all of them."""

    runs: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What is said of runs under one name."""

    name: str
    said: tuple[Said, ...]


def merged(runs: Sequence[Labelled]) -> tuple[Named, ...]:
    """Return the statements of runs by their names, in the order in which they first stand."""
    held: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for fact in run.facts:
            held.setdefault(fact.name, {}).setdefault(fact.text, []).append(run.label)
    return tuple(
        Named(name=name, said=tuple(_said(text, labels, len(runs)) for text, labels in texts.items()))
        for name, texts in held.items()
    )


def lines(runs: Sequence[Labelled]) -> tuple[Fact, ...]:
    """Return the statements of runs as lines, each with the runs that it holds for unless these are all."""
    return tuple(
        Fact(name=named.name, text=f"{said.runs}: {said.text}" if said.runs else said.text)
        for named in merged(runs)
        for said in named.said
    )


def notes(runs: Sequence[RunQuality]) -> tuple[Said, ...]:
    """Return what else a reader must know of runs, in the order in which it first stands."""
    held: dict[str, list[str]] = {}
    for run in runs:
        for note in dict.fromkeys(run.notes):
            held.setdefault(note, []).append(run.label)
    return tuple(_said(text, labels, len(runs)) for text, labels in held.items())


def _said(text: str, labels: Sequence[str], runs: int) -> Said:
    return Said(runs="" if len(labels) == runs else numbered_labels.list_labels(labels), text=text)

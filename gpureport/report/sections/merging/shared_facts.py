"""Named statements of several runs, each said once with the runs that it holds for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpureport.report.model.report_content import RunQuality
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import numbered_labels
from gpureport.report.wording.numbered_labels import group_holders


class Labelled(Protocol):
    """What is said of one run, or of one link between two steps."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Named statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedText:
    """A statement, and the runs that it holds for in words; empty where it holds for all of them."""

    runs: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """What is said of runs under one name."""

    name: str
    said: tuple[SharedText, ...]


def merge_facts(runs: Sequence[Labelled]) -> tuple[SharedFact, ...]:
    """Return the statements of runs by their names, in the order in which they first stand."""
    holders = group_holders((fact, run.label) for run in runs for fact in run.facts)
    names = group_holders((fact.name, _shared(fact.text, labels, len(runs))) for fact, labels in holders.items())
    return tuple(SharedFact(name=name, said=tuple(texts)) for name, texts in names.items())


def list_facts(runs: Sequence[Labelled]) -> tuple[Fact, ...]:
    """Return the statements of runs as lines, each with the runs that it holds for unless these are all."""
    return tuple(
        Fact(name=fact.name, text=f"{each.runs}: {each.text}" if each.runs else each.text)
        for fact in merge_facts(runs)
        for each in fact.said
    )


def merge_notes(runs: Sequence[RunQuality]) -> tuple[SharedText, ...]:
    """Return what else a reader must know of runs, in the order in which it first stands."""
    holders = group_holders((note, run.label) for run in runs for note in dict.fromkeys(run.notes))
    return tuple(_shared(note, labels, len(runs)) for note, labels in holders.items())


def _shared(text: str, labels: Sequence[str], runs: int) -> SharedText:
    return SharedText(runs="" if len(labels) == runs else numbered_labels.list_labels(labels), text=text)

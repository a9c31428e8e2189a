"""Which runs make which step: by labels, settings, folder, or a file."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.param_type import ParamType
from gpureport.cli.options.usage_errors import UsageError, refuse
from gpureport.cli.runs import named_runs, step_file, stored_runs
from gpureport.cli.sources.skipped_sources import list_names
from gpureport.comparison.factors import CHAIN_KINDS, Factor, assign_steps, find_ungrouped, parse_factors
from gpureport.errors import SettingsError

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording, Run
    from gpureport.store.run_records import StoredRun
    from gpureport.store.run_selection import RunSelection

MOST_STEPS = 40
"""Runs without a step label that one source may hold as steps of a chain.

A page has a row a step and a panel a pair: at 40 steps it is ten times as tall as a person reads, and at 200 its
headline, from the first run to the last, says nothing of the others (pragmatic).
"""
_FEWEST = 2
"""Runs that a comparison takes at least."""

Command = TypeVar("Command", bound=Callable[..., Any])


class By(ParamType[tuple[Factor, ...]]):
    """`step`, `folder`, `gpu`, `param:KEY` or `tag:KEY`; or two of the last three."""

    name = "step|folder|gpu|param:KEY|tag:KEY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Factor, ...]:
        """Take the settings apart."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_factors(str(value))
        except ValueError as error:
            refuse(str(error), param, ctx, code="not_a_grouping")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How runs are grouped into steps.

    Attributes:
        by: what makes a step, or one or two settings that make a group.
        steps: file that says which runs make which step.
    """

    by: tuple[Factor, ...]
    steps: Path | None

    @property
    def is_plain(self) -> bool:
        """Whether runs are steps by their labels, each without one on its own."""
        return self.steps is None and self.by == (Factor(kind="step"),)

    @property
    def label(self) -> str:
        """What runs are grouped by, in words: `step`, `param 'batch_size'`."""
        return " and ".join(f"{factor.kind} {factor.key!r}" if factor.key else factor.kind for factor in self.by)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The settings that runs are grouped by; none for a chain of steps."""
        return () if self.steps is not None else tuple(each for each in self.by if each.kind not in CHAIN_KINDS)


def step_options(command: Command) -> Command:
    """Add the options that say what makes a step; the command gets them as one `chain`."""

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        return command(chain=StepOptions(by=values.pop("by"), steps=values.pop("steps")), **values)

    by = click.option(
        "--by",
        type=By(),
        metavar=By.name,
        default="step",
        help="How to group runs into steps (default: by their step label); two settings with a comma: param:A,param:B.",
    )
    steps = click.option(
        "--steps",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file that lists the runs of each step.",
    )
    added: Any = by(steps(wrapped))
    return added  # type: ignore[no-any-return]  # click keeps the kind of what it decorates


def read_steps(
    source: tuple[str, ...], chain: StepOptions, options: "SourceOptions", *, tolerant: bool = False
) -> "list[Recording]":
    """Return the runs with their steps; the rest as `read_recordings` takes it.

    Raises:
        UsageError: when there is neither, or both.
        SettingsError: when a run lacks the param or tag or lies in no folder that tells, or steps are named twice over.
    """
    if (chain.steps is None) == (not source):
        msg = "name the runs, or a file of steps with --steps, and not both"
        raise UsageError(msg, click.get_current_context(), code="named_or_selected")
    if options.anonymise and chain.by[0].kind == "folder":
        raise SettingsError(
            "--by", "--anonymise leaves no folder to tell runs by", "name the steps with --step", code="no_step_folder"
        )
    if chain.steps is None:
        check = _refuse_many_steps if chain.is_plain else None
        found = named_runs.read_recordings(source, options, tolerant=tolerant, steps=True, check=check)
        chosen = _with_settings(_with_gpus(found), chain.factors) if tolerant else found
        return _label_steps(chosen, chain.by)
    if options.labels.step:
        raise SettingsError(
            "--step",
            f"{chain.steps} says which step each run belongs to",
            "leave one of them out",
            code="steps_stated_twice",
        )
    steps = step_file.read_step_file(chain.steps)
    named = [run for step in steps for run in step.runs]
    # names are hidden in all runs at once
    shown = replace(options, anonymise=False)
    found = [
        one
        for step in steps
        for own in [_add_labels(shown, step, len(named))]
        for one in named_runs.read_recordings(step.runs, own, named=named, step=step.label)
    ]
    return named_runs.hide_names(found) if options.anonymise else found


def _refuse_many_steps(source: str, readings: "Sequence[RunReading]") -> None:
    """Refuse a source with so many runs that they are parallel jobs, not steps.

    Raises:
        SettingsError: with the command that shows where their time went together.
    """
    _refuse_unlabelled(sum(each.labels.step is None for each in readings), source, [source])


def select_steps(
    source: tuple[str, ...], selection: "RunSelection", chain: StepOptions, options: "SourceOptions"
) -> tuple[str, ...]:
    """Return what a person named, or the ids of selected runs; the rest as `select_sources`.

    Raises:
        SettingsError: when so many runs are selected that they are no steps.
    """

    def check(runs: "Sequence[StoredRun]") -> None:
        words = (word for each in selection for word in ("--where", each.text))
        if chain.is_plain:
            _refuse_unlabelled(sum(stored.run.step is None for stored in runs), "--where", [*words])

    return stored_runs.select_sources(source, selection, options, check)


def _refuse_unlabelled(runs: int, where: str, words: Sequence[str]) -> None:
    """Refuse so many runs without a step label; `words` name or select them in a command."""
    if runs > MOST_STEPS:
        command = shlex.join(["gpureport", "fleet", *words, "-o", "fleet.html"])
        raise SettingsError(
            where,
            f"{runs:,} runs without a step label are no chain of steps",
            f"see them together: {command}",
            code="too_many_steps",
        )


def _with_gpus(found: Sequence["Recording"]) -> Sequence["Recording"]:
    """Return the runs with a GPU, where that leaves a comparison; name the others.

    A store often holds a run of the CPU alone, which as the first step would prevent every comparison.
    """
    kept = [one for one in found if one.run.gpus]
    if len(kept) < _FEWEST or len(kept) == len(found):
        return found
    left_out = ", ".join(one.run.name for one in found if not one.run.gpus)
    print_note(f"gpureport: left out, no GPU was recorded: {left_out}")
    return kept


def _with_settings(found: Sequence["Recording"], factors: Sequence[Factor]) -> Sequence["Recording"]:
    """Return the runs with the params and tags of `--by`, where they make two groups; name the others.

    A store often holds runs of other experiments beside those of a study.
    """
    ungrouped = find_ungrouped([one.run for one in found], factors)
    places = {place for lacking in ungrouped.values() for place in lacking}
    kept = [one for place, one in enumerate(found) if place not in places]
    if not places or len({tuple(factor.value(one.run) for factor in factors) for one in kept}) < _FEWEST:
        return found
    for factor, lacking in ungrouped.items():
        names = list_names([found[place].run.name for place in lacking])
        print_note(
            f"gpureport: {len(lacking)} of {len(found)} runs left out, without {factor.kind} {factor.key}: {names}"
        )
    return kept


def _add_labels(options: "SourceOptions", step: step_file.NamedStep, runs: int) -> "SourceOptions":
    """Return the options with the params and work of a step, which win over those given.

    Args:
        options: those of the command line.
        step: the step.
        runs: of all steps; what the command line says of work is said of each.
    """
    joined = tuple((dict(options.labels.param) | dict(step.params)).items())
    return options.with_labels(
        param=joined, work=step.work or options.labels.work, is_common=not step.work and runs > 1
    )


def _label_steps(found: Sequence["Recording"], by: tuple[Factor, ...]) -> list["Recording"]:
    """Return the runs with what `--by` names as their step, in the order of its values."""
    labelled = [
        found[place] if label is None else replace(found[place], run=replace(found[place].run, step=label))
        for place, label in assign_steps([one.run for one in found], by)
    ]
    if by[0].kind == "folder":
        _note_folder_order([one.run for one in labelled])
    return labelled


def _note_folder_order(runs: "Sequence[Run]") -> None:
    """Say what the order of the steps rests on, where their names do not show it."""
    from gpureport.comparison.folders import FolderOrder, order_folders  # noqa: PLC0415 - loads numpy

    folders, order = order_folders(runs, [run.step or "" for run in runs])
    if len(folders) > 1 and order is not FolderOrder.NUMBERS:
        print_note(f"gpureport: steps stand by {order.value}: {', '.join(folders)}")

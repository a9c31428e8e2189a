"""Groups runs into steps by labels, settings or folders, or as listed in a file."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gpureport.cli import recordings, sources, words
from gpureport.cli.messages import UsageError, list_names, print_note
from gpureport.cli.options import Options
from gpureport.cli.values import amount
from gpureport.comparison.factors import CHAIN_KINDS, Factor, assign_steps, find_ungrouped, order_folders
from gpureport.errors import SettingsError, SourceError
from gpureport.parsing import parse_json
from gpureport.recording import Recording
from gpureport.regular_files import path_exists, read_regular_file
from gpureport.settings.toml_files import read_toml

Text = Annotated[str, Meta(min_length=1)]
_BY_LABEL = (Factor(kind="step"),)
_FORM = (
    'for each step, write [[step]] with label = "…" and runs = ["…"], and optionally params = {lr = 0.1} and '
    'work = "12000:steps" (or a list with one amount per run)'
)


def list_factors(options: Options) -> tuple[Factor, ...]:
    return tuple(each for each in options.by or () if each.kind not in CHAIN_KINDS)


def read_steps(source: tuple[str, ...], options: Options, *, tolerant: bool = False) -> list[Recording]:
    by = options.by or _BY_LABEL
    selected = words.select_sources(source, options, steps=True)
    if (options.steps is None) == (not selected):
        raise UsageError("name the runs, or give a file of steps with --steps", code="named_or_selected")
    if options.steps is None:
        by = _BY_LABEL if by[0].kind == "folder" and len(options.step) > 1 else by
        # group by folder before hiding names
        hides_folders = options.anonymise and by[0].kind == "folder"
        own = replace(options, anonymise=options.anonymise and not hides_folders)
        found = recordings.read_recordings(selected, own, tolerant=tolerant, steps=True)
        chosen = _keep_grouped(_keep_with_gpus(found), list_factors(options)) if tolerant else found
        # a shell lists folders in alphabetical order
        labelled = _label_steps(chosen, by, hidden=hides_folders, ordered=[*source] != sorted(source))
        labelled = labelled if by[0].kind == "step" else recordings.drop_repeated_runs(labelled)
        return recordings.name_runs(labelled, options) if hides_folders else labelled
    if given := sources.find_given(options, ("step", "by")):
        what = f"{options.steps} already assigns each run to a step"
        hint = f"leave out {given} or --steps; to group by params, write them in the labels.json of each run's folder"
        raise SettingsError(given, what, hint, code="steps_stated_twice")
    steps = list(_read_step_file(options.steps))
    named = [run for step, _ in steps for run in step.runs]
    # hide the names of all runs at once
    shown, found = replace(options, anonymise=False), []
    for step, work in steps:
        # write values as trackers do: `True`, `14`, `bf16`
        params = tuple((dict(options.param) | {key: str(value) for key, value in step.params.items()}).items())
        own = replace(shown, param=params, work=work or options.work, is_common=not work and len(named) > 1)
        found += recordings.read_recordings(step.runs, own, every=named, step=step.label)
    return recordings.name_runs(found, options) if options.anonymise else found


def select_trial(source: tuple[str, ...], options: Options) -> tuple[tuple[str, ...], Options]:
    """Replace a trial's folder with its measured runs, a step per setting, and keep its decision."""
    file = Path(*source[:1], "decision.json")
    if len(source) != 1 or not (path_exists(file) and path_exists(file.with_name("trial.json"))):
        return source, options
    from gpureport.trial.result import list_cells, list_measured, write_headline

    labels = dict[str, str]()
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        found = parse_json(read_regular_file(file))
        changes = [(each, each["setting"].items() - found["base"].items()) for each in found["settings"]]
        found["rows"] = [(new, list_cells(each, found["unit"], is_base=not new)) for each, new in changes]
        found["headline"] = write_headline(found)
        labels = list_measured(found, file.parent) if found["plan"]["command"] else labels
    if not labels:
        raise SourceError(str(file), "lists no measured run", "see the output.log of its runs", code="nothing_measured")
    if missing := [run["folder"] for run in found["runs"] if str(file.parent / run["folder"]) not in labels]:
        print_note(f"gpureport: {source[0]}: left out failed or interrupted runs: {list_names(missing)}")
    steps = options.step if options.by else options.step or tuple(labels.values())
    return tuple(labels), replace(options, step=steps, trial=found)


def _keep_with_gpus(found: Sequence[Recording]) -> Sequence[Recording]:
    kept = [one for one in found if one.run.gpus]
    if len(kept) <= 1 or len(kept) == len(found):
        return found
    left_out = ", ".join(one.run.name for one in found if not one.run.gpus)
    print_note(f"gpureport: left out runs without a GPU: {left_out}")
    return kept


def _keep_grouped(found: Sequence[Recording], factors: Sequence[Factor]) -> Sequence[Recording]:
    ungrouped = find_ungrouped([one.run for one in found], factors)
    places = {place for lacking in ungrouped.values() for place in lacking}
    kept = [one for place, one in enumerate(found) if place not in places]
    if not places or len({tuple(factor.value(one.run) for factor in factors) for one in kept}) <= 1:
        return found
    for factor, lacking in ungrouped.items():
        names = list_names([found[place].run.name for place in lacking])
        without = f"because they lack {factor.kind} {factor.key}: {names}"
        print_note(f"gpureport: {len(lacking)} of {len(found)} runs left out {without}")
    return kept


def _label_steps(found: Sequence[Recording], by: Sequence[Factor], *, hidden: bool, ordered: bool) -> list[Recording]:
    steps = assign_steps([one.run for one in found], by)
    labelled = [
        found[place] if label is None else replace(found[place], run=replace(found[place].run, step=label))
        for place, label in (sorted(steps) if ordered and by[0].kind == "folder" else steps)
    ]
    if by[0].kind == "folder":
        runs, names = [one.run for one in labelled], [one.run.step or "" for one in labelled]
        folders, order = ([*dict.fromkeys(names)], "") if ordered else order_folders(runs, names)
        if hidden:
            numbers = {folder: f"step_{number}" for number, folder in enumerate(folders, 1)}
            return [replace(one, run=replace(one.run, step=numbers[one.run.step or ""])) for one in labelled]
        # report what determines the order, if the names do not show it
        if len(folders) > 1 and order:
            print_note(f"gpureport: steps are ordered by {order}: {', '.join(folders)}")
    return labelled


class NamedStep(msgspec.Struct, forbid_unknown_fields=True):
    label: Text
    runs: Annotated[list[Text], Meta(min_length=1)]
    params: dict[str, str | bool | int | float] = {}
    work: str | list[str] = []


class StepFile(msgspec.Struct, forbid_unknown_fields=True):
    step: Annotated[list[NamedStep], Meta(min_length=1)]


def _read_step_file(path: Path) -> Iterator[tuple[NamedStep, tuple[tuple[float, str], ...]]]:
    try:
        steps = msgspec.convert(read_toml(path, _FORM).content, StepFile).step
    except msgspec.ValidationError as error:
        raise SettingsError(str(path), f"not a list of steps ({error})", _FORM, code="not_a_step_file") from error
    if len({step.label for step in steps}) < len(steps):
        raise SettingsError(str(path), "two steps have the same label", "give each its own label", code="repeated_step")
    for step in steps:
        texts = [step.work] if isinstance(step.work, str) else step.work
        if len(texts) not in {0, 1, len(step.runs)}:
            what = f"the work of {step.label} must be one amount, or one for each of its {len(step.runs)} runs"
            raise SettingsError(str(path), what, _FORM, code="wrong_count")
        try:
            work = tuple(map(amount, texts))
        except ValueError as error:
            raise SettingsError(str(path), f"{step.label}: no amount of work", _FORM, code="not_an_amount") from error
        step.runs = [beside if path_exists(beside := str(path.parent / run)) else run for run in step.runs]
        yield step, work

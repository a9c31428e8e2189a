"""Which sources are one run: logs that only add to another become its host and training logs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note
from gpureport.errors import SourceError
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions

_FEWEST = 2
"""Sources that can be joined at least."""


def pair_sources(
    sources: Sequence[str], options: "SourceOptions", *, steps: bool = False
) -> "list[tuple[str, SourceOptions]]":
    """Return each source that is read as runs; what belongs to these runs is in its options.

    Host logs, training logs and further GPU logs of a run, named beside its main log, become `--host` and
    `--training` of it, whatever order they stand in.

    Args:
        sources: what a person named.
        options: how it is read.
        steps: whether the sources are steps to compare, which stay apart.

    Raises:
        SettingsError: when options are not as many as sources.
        SourceError: when a training log belongs to no run, or may belong to several.
    """
    logs, hosts, training = split_companions(sources, options)
    named = options
    if len(logs) > 1 and len(options.input.training) not in {0, len(logs)}:
        # not one for each source in their order: each goes to the run whose time it shares
        training = [*training, *map(str, options.input.training)]
        options = replace(options, input=replace(options.input, training=()))
    every = options.for_each(logs)
    files = [place for place, (source, own) in enumerate(every) if _is_log(source, own)]
    if len(sources) < _FEWEST or not files or len(files) + len(hosts) + len(training) < _FEWEST:
        return named.for_each(logs)
    labelled = max(len(options.labels.step), len(options.labels.work)) > 1
    try:
        joined = _join([every[place] for place in files], hosts, training, steps=steps or labelled)
    except SourceError:
        named.for_each(logs)
        if hosts or training:
            raise
        # each source then says itself what is wrong with it
        return every
    found = dict(zip(files, joined, strict=True))
    pairs = [(source, found.get(place, own)) for place, (source, own) in enumerate(every)]
    kept = [(source, own) for source, own in pairs if own is not None]
    if len(kept) == 1:
        # logs of one run, of which its work was stated
        kept = [(source, own.with_labels(is_common=options.labels.is_common)) for source, own in kept]
    return kept


def split_companions(sources: Sequence[str], options: "SourceOptions") -> tuple[list[str], list[Path], list[str]]:
    """Return the sources with GPUs or no files, the host logs among them, and the training logs."""
    from gpureport.importers.sources import recognise_companion  # noqa: PLC0415 - loads pyarrow

    alone = len(sources) < _FEWEST or options.kind
    kinds = [None if alone or not path_exists(source) else recognise_companion(Path(source)) for source in sources]
    if all(kinds):
        return list(sources), [], []
    named = list(zip(sources, kinds, strict=True))
    logs = [source for source, kind in named if kind is None]
    # the order in which they are named must not matter
    hosts = sorted(Path(source) for source, kind in named if kind == "host")
    return logs, hosts, sorted(source for source, kind in named if kind == "training")


def _is_log(source: str, options: "SourceOptions") -> bool:
    """Return whether a source is a file or folder of logs."""
    from gpureport.importers.sources import find_tracker  # noqa: PLC0415 - loads pyarrow

    if source == "-" or not path_exists(source) or options.kind:
        return False
    return find_tracker(source) is None


def _join(
    pairs: "Sequence[tuple[str, SourceOptions]]", hosts: Sequence[Path], training: Sequence[str], *, steps: bool
) -> "list[SourceOptions | None]":
    """Return each source's options with what belongs to its runs; None where it belongs to others."""
    from gpureport.importers.runs import assign_training_logs, find_source_runs  # noqa: PLC0415 - loads pyarrow
    from gpureport.importers.sources import identify_training_logs  # noqa: PLC0415 - as above

    options = pairs[0][1]
    placement = options.placement.read_options()
    sources = [source for source, _ in pairs]
    found = find_source_runs(sources, [*options.input.host, *hosts], options=placement, steps=steps)
    flat = [inputs for runs in found.runs for inputs in runs]
    trained = iter(assign_training_logs(identify_training_logs(training), flat, placement))
    joined: list[SourceOptions | None] = []
    for (source, own), runs in zip(pairs, found.runs, strict=True):
        logs = dict.fromkeys(file.locator for _ in runs for file in next(trained))
        extra = dict.fromkeys(
            each.locator
            for inputs in runs
            for each in inputs
            if each.locator != source and Path(source) not in Path(each.locator).parents
        )
        read = replace(own.input, host=tuple(map(Path, extra)), training=(*own.input.training, *map(Path, logs)))
        joined.append(replace(own, input=read) if runs else None)
        named = [locator for locator in extra if locator in sources]
        if named:
            print_note(f"gpureport: read as one run: {', '.join([source, *named])}")
    return joined

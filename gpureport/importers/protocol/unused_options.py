"""Options that no log of a run uses, which are no part of its identity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Input, ReadOptions


@runtime_checkable
class DropsUnusedOptions(Protocol):
    """An importer that can do without options it is given."""

    def drop_unused_options(self, file: RawFile, options: ReadOptions) -> ReadOptions:
        """Return the options without those that reading a source would not use; its beginning tells."""
        ...


def drop_unused_options(inputs: Sequence[Input], files: Sequence[RawFile], options: ReadOptions) -> ReadOptions:
    """Return the options without those that no log of a run uses."""
    logs = [
        each.importer.drop_unused_options(file, options) if isinstance(each.importer, DropsUnusedOptions) else options
        for each, file in zip(inputs, files, strict=True)
        if not each.beside
    ]
    return replace(
        options,
        columns=options.columns if any(log.columns for log in logs) else None,
        interval=options.interval if any(log.interval for log in logs) else None,
    )

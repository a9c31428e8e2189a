"""The identity of a run: the bytes of its sources, and those options that select or place rows and are used."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Protocol, runtime_checkable

from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Input, ReadOptions
from gpureport.recording import Source


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


def format_identity_options(options: ReadOptions) -> str:
    """Return the options that select or place rows as the text that is part of a run's identity."""
    lines = [f"tz={options.tz or ''} gpus={options.gpus or ''}"]
    names = ("columns", "interval", "gpus_per_tick", "map", "as_logged")
    later = {name: getattr(options, name) or None for name in names}
    lines += [f"{name}={value}" for name, value in later.items() if value is not None]
    return "".join(f"{line}\n" for line in lines)


def compute_run_id(sources: Sequence[Source], options: ReadOptions) -> str:
    """Return the run's id: from the bytes of its sources and the options that select or place rows."""
    hasher = sha256()
    for source in sources:
        hasher.update(f"{source.kind} {source.sha256}\n".encode())
    hasher.update(format_identity_options(options).encode())
    return hasher.hexdigest()[:16]

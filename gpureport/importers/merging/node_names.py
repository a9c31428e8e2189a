"""Names for the machines of one run, taken from files and folders."""

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.record_folder import COMPRESSED_SUFFIXES, name_log, read_run_file

if TYPE_CHECKING:
    from gpureport.importers.merging.shared_devices import LogContents, Pair

_COMPRESSED = "|".join(suffix.removeprefix(".") for suffix in COMPRESSED_SUFFIXES)
_SUFFIX = re.compile(rf"\.(?:{_COMPRESSED}|csv|log|txt|out|\d+)$|[-_.]\d{{8}}(?:[-_T]?\d{{4,6}})?$", re.IGNORECASE)
_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)
_LONGEST = 40


def name_nodes(logs: "Sequence[LogContents]", clashes: "Collection[Pair]") -> list[str | None]:
    """Return a node for each log, from its recording, or from file or folder names: the shortest that differ.

    A host log that bears the name of no GPU log is one of no particular node.
    """
    for level in _LEVELS:
        names = [level(Path(log.locator)) for log in logs]
        told = all(names[one] != names[other] for one, other in clashes)
        if told and all(name or log.beside for name, log in zip(names, logs, strict=True)):
            break
    else:
        names = [f"{name}-{place}" for place, name in enumerate(names)]
    gpus = {name for name, log in zip(names, logs, strict=True) if not log.beside}
    clashing = {place for pair in clashes for place in pair}
    return [name if name in gpus or place in clashing else None for place, name in enumerate(names)]


def strip_suffixes(name: str) -> str:
    """Return a file name without the suffixes of its kind, its compression and its rotation."""
    while (shorter := _SUFFIX.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def name_machine(path: Path) -> str:
    """Return what a file's name says of its machine: the name without words such as `gpu`, `host` and `log`."""
    return _clean(_COMMON.sub("", strip_suffixes(path.name)))


def _clean(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("-_.")[:_LONGEST]


def _recorded_host(path: Path) -> str:
    """Return the machine that `gpureport record` wrote a log on; empty for other logs."""
    run = read_run_file(path.parent) if name_log(path) else None
    return _clean(run.host) if run else ""


def _folder(path: Path) -> str:
    return _clean(path.resolve().parent.name)


_LEVELS: tuple[Callable[[Path], str], ...] = (
    _recorded_host,
    name_machine,
    _folder,
    lambda path: _clean(path.name),
    lambda path: _clean(f"{_folder(path)}-{path.name}"),
)

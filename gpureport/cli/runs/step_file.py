"""The file that `--steps` names: which runs make which step."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.errors import SettingsError

_KEYS = ("label", "runs")
_FORM = 'write [[step]] with label = "…" and runs = ["…"] for each step'


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStep:
    """A step: its label and its runs, as a person would name them as sources."""

    label: str
    runs: tuple[str, ...]


def read_step_file(path: Path) -> tuple[NamedStep, ...]:
    """Return the steps of a file in their order.

    Args:
        path: the file. A run whose name is that of a file in the same folder is that file.

    Raises:
        SettingsError: when it cannot be read, or is not of the form.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(str(path), f"cannot be read: {error}", _FORM) from error
    entries = content.get("step")
    if set(content) != {"step"} or not isinstance(entries, list) or not entries:
        raise SettingsError(str(path), "holds no steps, or something else", _FORM)
    steps = tuple(_step(entry, path) for entry in entries)
    labels = [step.label for step in steps]
    if len(set(labels)) < len(labels):
        raise SettingsError(str(path), "two steps have one label", "give each step a label of its own")
    return steps


def _step(entry: Any, path: Path) -> NamedStep:  # noqa: ANN401 - whatever the file holds
    match entry:
        case {"label": str(label), "runs": [*runs]} if label and runs and len(entry) == len(_KEYS):
            if all(isinstance(run, str) and run for run in runs):
                return NamedStep(label=label, runs=tuple(_resolve_run(path, run) for run in runs))
    raise SettingsError(str(path), f"not a step: {entry!r}", _FORM)


def _resolve_run(path: Path, run: str) -> str:
    near = path.parent / run
    return str(near) if near.exists() else run

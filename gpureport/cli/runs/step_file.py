"""The file that `--steps` names: which runs make which step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.cli.options.option_values import parse_amount
from gpureport.errors import SettingsError
from gpureport.regular_files import path_exists
from gpureport.settings.toml_files import read_toml

_FORM = (
    'write [[step]] with label = "…" and runs = ["…"] for each step, and if you like params = {lr = 0.1} and '
    'work = "12000:steps", or one such text for each run in a list'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStep:
    """A step.

    Attributes:
        label: its name.
        runs: its runs, as a person would name them as sources.
        params: what its runs were configured with, as `--param` would say it of each.
        work: what each run did, one amount for all or one for each, if stated.
    """

    label: str
    runs: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    work: tuple[tuple[float, str], ...] = ()


def read_step_file(path: Path) -> tuple[NamedStep, ...]:
    """Return the steps of a file in their order.

    Args:
        path: the file. A run whose name is that of a file in the same folder is that file.

    Raises:
        SettingsError: when it cannot be read, or is not of the form.
    """
    content = read_toml(path, _FORM).content
    entries = content.get("step")
    if set(content) != {"step"} or not isinstance(entries, list) or not entries:
        raise SettingsError(str(path), "holds no steps, or something else", _FORM, code="not_a_step_file")
    steps = tuple(_step(entry, path) for entry in entries)
    labels = [step.label for step in steps]
    if len(set(labels)) < len(labels):
        raise SettingsError(
            str(path), "two steps have one label", "give each step a label of its own", code="repeated_step"
        )
    return steps


def _step(entry: Any, path: Path) -> NamedStep:
    rest = dict(entry) if isinstance(entry, dict) else {}
    label, runs, params = rest.pop("label", None), rest.pop("runs", None), rest.pop("params", {})
    work = rest.pop("work", [])
    named = isinstance(label, str) and label and isinstance(runs, list) and runs and isinstance(params, dict)
    if rest or not named or not all(isinstance(run, str) and run for run in runs):
        raise SettingsError(str(path), f"not a step: {entry!r}", _FORM, code="not_a_step_file")
    return NamedStep(
        label=label,
        runs=tuple(_resolve_run(path, run) for run in runs),
        params=tuple((key, _param_text(value, key, path)) for key, value in params.items()),
        work=_read_work([work] if isinstance(work, str) else work, len(runs), path),
    )


def _read_work(texts: Any, runs: int, path: Path) -> tuple[tuple[float, str], ...]:
    """Return the amounts of work that a step states, none, one, or one for each run."""
    if not isinstance(texts, list) or len(texts) not in {0, 1, runs}:
        raise SettingsError(
            str(path), f"work must be one text, or one for each of {runs} runs: {texts!r}", _FORM, code="wrong_count"
        )
    amounts = [parse_amount(text) if isinstance(text, str) else None for text in texts]
    known = tuple(amount for amount in amounts if amount is not None)
    if len(known) < len(amounts):
        raise SettingsError(str(path), f"work is not an amount with its unit: {texts!r}", _FORM, code="not_an_amount")
    return known


def _param_text(value: Any, key: str, path: Path) -> str:
    """Return a value as trackers write it: `True`, `14`, `bf16`."""
    if isinstance(value, str | int | float):
        return str(value)
    raise SettingsError(
        str(path), f"param {key} is not a text, a number or a truth value: {value!r}", _FORM, code="wrong_setting"
    )


def _resolve_run(path: Path, run: str) -> str:
    near = str(path.parent / run)
    return near if path_exists(near) else run

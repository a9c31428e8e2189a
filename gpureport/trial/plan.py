"""The plan of a trial: its settings, the order of its runs, and the file that keeps it for the next start."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from secrets import randbits

from gpureport.errors import SettingsError, StoreError
from gpureport.parsing import parse_duration, parse_json
from gpureport.redaction import hide_secrets
from gpureport.regular_files import code_system_error, read_regular_file
from gpureport.store.atomic_writes import replace_file
from gpureport.trial.decision import Setting

PLAN_FILE, SCHEMA = "trial.json", "gpureport.trial/1"
_MOST = 64
"""Maximum number of settings. More would be a search for hyperparameters, which other tools do better."""


@dataclass(frozen=True, slots=True)
class Factor:
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried. The first value of each factor is in use today. `command` has placeholders, but no secrets."""

    command: tuple[str, ...]
    factors: tuple[Factor, ...]
    design: str = "one-at-a-time"
    repeat: int = 3
    budget_seconds: float | None = None
    interval: float = 1.0
    host_only: bool = False
    seed: int = 0

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings, with the one used today first."""
        columns = [[(factor.name, value) for value in factor.values] for factor in self.factors]
        if self.design == "all":
            return tuple(product(*columns))
        base = [column[0] for column in columns]
        others = [(*base[:at], cell, *base[at + 1 :]) for at, column in enumerate(columns) for cell in column[1:]]
        return (tuple(base), *others)

    def order_round(self, number: int) -> list[Setting]:
        # reversing every other round would cancel a drift, but run one setting twice in a slow spell of the machine
        settings = list(self.settings)
        Random(f"{self.seed}-{number}").shuffle(settings)  # noqa: S311 - an order needs no secrecy
        return settings

    def name_folders(self) -> dict[Setting, str]:
        names: dict[Setting, str] = {}
        for place, setting in enumerate(self.settings):
            name = re.sub(r"[^\w.+=,-]+", "_", label_setting(setting))[:120]
            names[setting] = f"{name}-{place}" if name in names.values() else name
        return names


def label_setting(setting: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{name}={value}" for name, value in setting)


def fill_command(command: Sequence[str], setting: Setting) -> list[str]:
    """Return a command with values for placeholders. Braces around other names are left as they are."""
    values = dict(setting)
    known = re.compile(rf"{{({'|'.join(map(re.escape, values))})}}")
    return [known.sub(lambda found: values[found[1]], word) for word in command]


def make_plan(sets: Sequence[tuple[str, str]], command: Sequence[str], budget: str | None, **more: object) -> Plan:
    """Return the plan that options describe. Raises SettingsError."""
    factors = tuple(Factor(name, tuple(map(str.strip, values.split(",")))) for name, values in sets)
    for factor in factors:
        if [each.name for each in factors].count(factor.name) > 1 or factor.name == "folder":
            what, hint = f"{factor.name} is given twice or reserved", "give all values of a setting in one --set"
            raise SettingsError("--set", what, hint, code="repeated_setting")
        if len({*factor.values}) < len(factor.values) or "" in factor.values:
            what, hint = f"{factor.name} has an empty or repeated value", "give each value once"
            raise SettingsError("--set", what, hint, code="repeated_value")
        if not any(f"{{{factor.name}}}" in word for word in command):
            what, hint = f"the command does not use {factor.name}", f"write {{{factor.name}}} where its value belongs"
            raise SettingsError("--set", what, hint, code="unused_setting")
    seconds = None if budget is None else parse_duration(budget)
    if budget is not None and not seconds:
        raise SettingsError("--budget", f"{budget!r} is not a duration", "write it as 60m or 2h", code="not_a_time")
    hidden = hide_secrets(command)
    plan = Plan(command=hidden, factors=factors, budget_seconds=seconds, seed=randbits(32), **more)  # type: ignore[arg-type]
    count = len(plan.settings)
    if not 1 < count <= _MOST:
        what = f"there {'is only one setting' if count == 1 else f'are {count} settings'} to try"
        hint = f"give from 2 to {_MOST}, such as --set workers=2,4,8"
        raise SettingsError("--set", what, hint, code="wrong_number_of_settings")
    return plan


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what, code = error.strerror or "cannot be written", code_system_error(error, "cannot_write")
        hint = "free some space or check the disk, then repeat the command"
        raise StoreError(str(folder), what, hint, code=code) from error


def write_json(file: Path, content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with disk_errors(file.parent):
        replace_file(file, f"{text}\n".encode(), file.parent)


def open_plan(folder: Path, plan: Plan) -> Plan:
    """Return the plan in a folder, or write it if no run has finished. Later, only the budget may differ."""
    file, begun = folder / PLAN_FILE, any(folder.glob("*/round-*"))
    if not (file.exists() and begun):
        if not file.exists() and folder.exists() and any(not each.name.startswith(".") for each in folder.iterdir()):
            what = "the folder contains other files"
            raise SettingsError(str(folder), what, "name a new folder with -o", code="folder_taken")
        write_json(file, {"schema": SCHEMA} | asdict(plan))
        return plan
    import msgspec

    try:
        content = parse_json(read_regular_file(file).decode("utf-8"))
        stored = msgspec.convert(content, Plan) if content["schema"] == SCHEMA else None
    except (ValueError, KeyError, TypeError, msgspec.ValidationError):
        stored = None
    if stored is None:
        raise SettingsError(str(file), "not the plan of a trial", "name a new folder with -o", code="not_a_trial")
    kept = replace(stored, budget_seconds=plan.budget_seconds)
    ours, theirs = asdict(plan), asdict(kept)
    if other := [name for name in ours if ours[name] != theirs[name] and name != "seed"]:
        what = f"the trial in this folder was begun with other options or another command ({', '.join(other)})"
        hint = "repeat its command, or name a new folder with -o"
        raise SettingsError(str(folder), what, hint, code="other_trial")
    return kept

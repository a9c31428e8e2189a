"""A trial's plan: settings, run order, and the file that stores it for the next start."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from secrets import randbits
from typing import Any, Literal

from gpureport.errors import GpureportError, SettingsError
from gpureport.parsing import parse_duration, parse_json
from gpureport.redaction import hide_secrets
from gpureport.regular_files import read_regular_file
from gpureport.store.atomic_writes import replace_file

Setting = tuple[tuple[str, str], ...]
"""The name and value of each factor."""
WORDS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_PLAN_FILE = "trial.json"
_MOST = 64
"""Maximum number of settings. More would be a hyperparameter search, which other tools do better."""


@dataclass(frozen=True, slots=True)
class Factor:
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried. The first value of each factor is the current one. `command` has placeholders, but no secrets."""

    schema: Literal["gpureport.trial/1"]
    command: tuple[str, ...]
    factors: tuple[Factor, ...]
    design: str
    repeat: int
    budget_seconds: float | None
    interval: float
    host_only: bool
    seed: int

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings, with the current one first."""
        columns = [[(each.name, value) for value in each.values] for each in self.factors]
        if self.design == "all":
            return tuple(product(*columns))
        base = [column[0] for column in columns]
        others = [(*base[:at], cell, *base[at + 1 :]) for at, column in enumerate(columns) for cell in column[1:]]
        return (tuple(base), *others)

    def order_round(self, number: int) -> list[Setting]:
        # reversing every other round would cancel a drift, but run a setting twice in a slow spell
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
    return ",".join(map("=".join, setting))


def fill_command(command: Sequence[str], setting: Setting) -> list[str]:
    """Return a command with values in place of the settings' names. Other braces are left alone."""
    values = dict(setting)
    known = re.compile(rf"{{({'|'.join(map(re.escape, values))})}}")
    return [known.sub(lambda found: values[found[1]], word) for word in command]


def split_command(tags: Iterable[tuple[str, str]]) -> list[str]:
    """Return the words of the command in a run's tags, or an empty list."""
    try:
        return shlex.split(dict(tags).get("command", ""))
    except ValueError:
        return []


def make_error(kind: type[GpureportError], where: object, code: str, **about: object) -> GpureportError:
    what, hint = (text.format(**about) for text in WORDS["problems"][code])
    return kind(str(where), what, hint, code=code)


def make_plan(sets: Sequence[tuple[str, str]], command: Sequence[str], budget: str | None, **more: Any) -> Plan:
    factors = tuple(Factor(name, tuple(map(str.strip, values.split(",")))) for name, values in sets)
    for each in factors:
        problems = {
            "repeated_setting": each.name == "folder" or sum(each.name == name for name, _ in sets) > 1,
            "repeated_value": len({"", *each.values}) <= len(each.values),
            "unused_setting": not any(f"{{{each.name}}}" in word for word in command),
        }
        for code, applies in problems.items():
            if applies:
                raise make_error(SettingsError, "--set", code, name=each.name)
    known = {f"{{{name}}}" for name in ("folder", *(each.name for each in factors))}
    for word in command:
        if re.fullmatch(r"\{\w+\}", word) and word not in known:
            raise make_error(SettingsError, "--set", "unknown_setting", word=word, name=word[1:-1])
    seconds = parse_duration(budget) if budget else None
    if budget is not None and not seconds:
        raise make_error(SettingsError, "--budget", "not_a_time", text=budget)
    about: dict[str, Any] = {"command": hide_secrets(command), "factors": factors, "budget_seconds": seconds}
    plan = Plan(schema="gpureport.trial/1", seed=randbits(32), **about, **more)
    if not 1 < (count := len(plan.settings)) <= _MOST:
        raise make_error(SettingsError, "--set", "wrong_number_of_settings", count=count, most=_MOST)
    return plan


def write_json(file: Path, content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(file, f"{text}\n".encode(), file.parent)


def open_plan(folder: Path, plan: Plan) -> Plan:
    """Return the plan in a folder, or write it if no run has finished; after that, only the budget may change."""
    import msgspec

    file = folder / _PLAN_FILE
    if not file.exists() and any(not each.name.startswith(".") for each in folder.iterdir()):
        raise make_error(SettingsError, folder, "folder_taken")
    if not (file.exists() and any(folder.glob("*/round-*"))):
        write_json(file, asdict(plan))
        return plan
    try:
        stored = msgspec.convert(parse_json(read_regular_file(file).decode()), Plan)
    except ValueError as error:
        raise make_error(SettingsError, file, "not_a_trial") from error
    kept = replace(stored, budget_seconds=plan.budget_seconds)
    ours, theirs = asdict(replace(plan, seed=kept.seed)), asdict(kept)
    if other := [name for name in ours if ours[name] != theirs[name]]:
        raise make_error(SettingsError, folder, "other_trial", names=", ".join(other))
    return kept

"""The user's goals for training metrics: which direction is better, and the target value."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from gpureport.errors import SettingsError
from gpureport.names import QUALITY_ROLES, recognise_metric

if TYPE_CHECKING:
    from gpureport.settings import Settings

_DIRECTIONS = {"higher": True, "lower": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityTarget:
    name: str
    value: float

    @property
    def text(self) -> str:
        return f"{self.name}={self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingGoals:
    better: tuple[tuple[str, bool], ...] = ()
    target: QualityTarget | None = None

    def is_higher_better(self, name: str) -> bool | None:
        """Return whether higher is better, or None if unknown."""
        metric = recognise_metric(name)
        named = None if metric is None or metric.role not in QUALITY_ROLES else not metric.falls
        return dict(self.better).get(name, named)

    def with_overrides(self, better: tuple[tuple[str, bool], ...], target: QualityTarget | None) -> "TrainingGoals":
        goals = TrainingGoals(better=(*self.better, *better), target=target or self.target)
        if goals.target is not None and goals.is_higher_better(goals.target.name) is None:
            name = goals.target.name
            what = f"it is unclear whether a higher {name} is better"
            hint = f"use --better {name}=higher or {name}=lower"
            raise SettingsError("--target" if target else "target", what, hint, code="unknown_direction")
        return goals

    def is_named(self, name: str) -> bool:
        return name in dict(self.better) or (self.target is not None and self.target.name == name)


NO_GOALS = TrainingGoals()


def parse_direction(text: str) -> tuple[str, bool] | None:
    name, _, direction = text.rpartition("=")
    higher = _DIRECTIONS.get(direction.strip())
    return None if higher is None or not name.strip() else (name.strip(), higher)


def parse_target(text: str) -> QualityTarget | None:
    name, _, written = text.rpartition("=")
    try:
        value = float(written)
    except ValueError:
        return None
    return QualityTarget(name=name.strip(), value=value) if name.strip() and isfinite(value) else None


def make_goals(better: Mapping[str, str], target: str | None) -> TrainingGoals:
    if wrong := next((name for name, way in better.items() if way not in _DIRECTIONS), None):
        raise ValueError(f"better for {wrong} must be 'higher' or 'lower'")
    wanted = None if target is None else parse_target(target)
    if target is not None and wanted is None:
        raise ValueError(f"target {target!r} is not of the form NAME=NUMBER")
    return NO_GOALS.with_overrides(tuple((name, _DIRECTIONS[way]) for name, way in better.items()), wanted)


def read_goals(settings: "Settings") -> TrainingGoals:
    section = settings.section("training")
    section.only({"better", "target"})
    written = section.text("target")
    target = parse_target(written) if written else None
    if written and target is None:
        raise section.wrong("target", f"invalid target {written!r}", 'write target = "val_loss=2"', code="not_a_target")
    given: Any = section.values.get("better", {})
    if not isinstance(given, dict) or not all(isinstance(way, str) and way in _DIRECTIONS for way in given.values()):
        hint = 'write better = { my_metric = "higher", other = "lower" }'
        raise section.wrong("better", "better must be higher or lower for each metric", hint, code="wrong_value")
    return TrainingGoals(better=tuple((str(name), _DIRECTIONS[way]) for name, way in given.items()), target=target)

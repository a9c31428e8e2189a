"""The study of groups as JSON."""

from dataclasses import asdict
from typing import Any

from gpureport.comparison.effects import FigureEffects, SettingEffect
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.study import BestGroup, Study


def study_json(study: Study | None) -> dict[str, Any] | None:
    """Return a study; None where the steps are a chain."""
    if study is None:
        return None
    return {
        "by": [asdict(factor) | {"values": values} for factor, values in zip(study.by, study.values, strict=True)],
        "groups": [asdict(group) for group in study.groups],
        "best": {
            "cost": study.best_by_cost and _best(study.best_by_cost),
            "speed": study.best_by_speed and _best(study.best_by_speed),
        },
        "also_varied": [asdict(factor) for factor in study.mixed_in],
        "repetitions": [asdict(factor) for factor in study.varied.repetitions],
        "names": [asdict(factor) for factor in study.varied.names],
        "effects": [_effects(each) for each in study.effects],
    }


def _best(best: BestGroup) -> dict[str, Any]:
    lower = [_lower_quality(change) for change in best.lower_quality]
    return asdict(best) | {"lower_quality": lower, "verdict_code": best.verdict.code}


def _lower_quality(change: QualityChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "group": change.base,
        "value": change.values[0],
        "own": change.values[1],
        "verdict": change.verdict,
        "verdict_code": change.verdict.code,
    }


def _effects(effects: FigureEffects) -> dict[str, Any]:
    return asdict(effects) | {"settings": [_setting(setting) for setting in effects.settings]}


def _setting(setting: SettingEffect) -> dict[str, Any]:
    return {
        **asdict(setting.factor),
        "confounded_with": [asdict(factor) for factor in setting.confounded_with],
        "levels": [
            asdict(level) | {"verdict_code": level.verdict.code if level.verdict else ""} for level in setting.levels
        ],
    }

"""The content of the report as JSON: the model, name by name."""

import json
import math
from dataclasses import fields, is_dataclass
from typing import TypeAlias

import numpy as np

from gpureport.recording import Recording
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP

_DIGITS = 6

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


def render(report: Report) -> str:
    """Return the report as JSON: null where a value was not recorded, series left out."""
    return json.dumps(_plain(report), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: object) -> JsonValue:
    if isinstance(value, np.ndarray):
        return [_plain(float(entry)) for entry in value]
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value))
        return {name: _plain(entry) for name, entry in named if not isinstance(entry, Recording)}
    if isinstance(value, str):
        return value.replace(GAP, " ")
    return value if isinstance(value, bool | int) else None

"""The content of a report as JSON, with the field names of the model."""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gpureport.report.model.blocks import Block
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP

_DIGITS = 6


def render(report: Report) -> str:
    return dump(plain(report)).replace(GAP, " ")


def dump(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Convert a value for JSON. Round numbers and omit the empty fields of blocks."""
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(entry) for entry in value]
    if is_dataclass(value):
        named = {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.repr}
        return {name: said for name, said in named.items() if said or not isinstance(value, Block)}
    return value if isinstance(value, bool | int | str) else None

"""The content of the report as JSON: the model, name by name."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gpureport.report.model.blocks import Block
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP

_DIGITS = 6


def render(report: Report) -> str:
    """Return the report as JSON: null where a value was not recorded, series left out."""
    return dump(plain(report)).replace(GAP, " ")


def dump(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def plain(value: Any, made: Mapping[type, Callable[[Any], Any]] | None = None) -> Any:
    """Return what JSON has of a value, figures rounded: of a dataclass what its repr shows, and what is made of it.

    A block has a place for everything that a page may show, most of which are empty and left out.
    """
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(entry, made) for entry in value]
    if is_dataclass(value):
        more = made[type(value)](value) if made and type(value) in made else {}
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.repr} | more
        is_block = isinstance(value, Block)
        return {name: said for name, entry in named.items() if (said := plain(entry, made)) or not is_block}
    return value if isinstance(value, bool | int | str) else None

"""Generates the JSON Schema of a report from the dataclasses of its content."""

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gpureport.report.model.blocks import Block
from gpureport.report.model.report_content import SCHEMA, Report

Schema = dict[str, Any]
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_DRAWN = {"head", "bars", "series", "marks", "marked", "events", "tiles", "actions", "charts", "code", "style", "part"}
_LONGEST_LINE = 240
_ATTRIBUTE = re.compile(r"^ +(\w+): (.+(?:\n {8,}.+)*)", re.MULTILINE)


def schema() -> Schema:
    """Return the schema; readers must accept further fields, since later versions add some."""
    definitions: dict[str, Schema] = {}
    reference = _of(Report, definitions)
    root = definitions.pop(Report.__name__)
    root["properties"]["schema"] = {"const": SCHEMA}
    assert reference == {"$ref": f"#/$defs/{Report.__name__}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':').replace('.', ':')}",
        "title": SCHEMA,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_page() -> str:
    """Return docs/reference/report-2.schema.json."""
    return _write(schema()) + "\n"


def _write(part: Any, indent: str = "") -> str:
    """Return JSON with each object on one line if it fits."""
    line = json.dumps(part, ensure_ascii=False)
    if len(line) <= _LONGEST_LINE or not isinstance(part, dict):
        return line
    inner = f"{indent} "
    entries = (f'{inner}"{name}": {_write(value, inner)}' for name, value in part.items())
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


def _of(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of an annotation; dataclasses are added to `definitions`."""
    is_code = isinstance(kind, type) and issubclass(kind, StrEnum)
    if kind in _PLAIN or is_code:
        # later versions add values to a code, so readers must accept others
        return {"type": "string" if is_code else _PLAIN[kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, inner = get_origin(kind), get_args(kind)
    # NDArray is an alias of the array before NumPy 2.5, and a separate type since
    if origin in {np.ndarray, NDArray}:
        return {"type": "array", "items": {"type": ["number", "null"]}}
    if origin in {Union, UnionType}:
        return _either([_of(entry, definitions) for entry in inner])
    if origin is Sequence or (origin is tuple and inner[-1] is Ellipsis):
        items = {"type": "array", "items": _of(inner[0], definitions)}
        return items if inner[0] is not str else _share("Strings", items, definitions)
    if origin is tuple:
        parts = [_of(entry, definitions) for entry in inner]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    message = f"no schema for {kind}"
    raise TypeError(message)


def _share(name: str, described: Schema, definitions: dict[str, Schema]) -> Schema:
    definitions[name] = described
    return {"$ref": f"#/$defs/{name}"}


def _either(options: list[Schema]) -> Schema:
    if all(set(option) == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


def _object(kind: type, definitions: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind)
    is_block = kind is Block
    # a block has the content on paper and page; heads and pictures are fields of the report
    named = [entry.name for entry in fields(kind) if entry.repr and not (is_block and entry.name in _DRAWN)]
    said = inspect.getdoc(kind) or ""
    meanings = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(said)}
    properties = {
        name: _of(hints[name], definitions) | ({"description": meanings[name]} if name in meanings else {})
        for name in named
    }
    # a dataclass without a docstring gets one that repeats its fields
    about = "" if said.startswith(f"{kind.__name__}(") else " ".join(said.split("\n\n")[0].split())
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": properties,
        # empty parts of a block are left out
        "required": [] if is_block else named,
    }

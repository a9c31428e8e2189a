"""The file of labels beside a log: `gpu.csv.json` or `gpu.json` for one log, `labels.json` for a folder.

`{"name": "base", "step": "0", "params": {"batch_size": 64}, "tags": {"user": "ada"}}`: an object with no other key,
each of which may be missing. Any other JSON is no file of labels; under a name that leaves no doubt this is noted.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpureport.importers.protocol.importer import Labels
from gpureport.json_text import parse_json
from gpureport.label_tags import override_pairs
from gpureport.record_folder import LABEL_FILE

_KEYS = {"name", "step", "params", "tags"}
_LONGEST = 2**20
"""Bytes of such a file at most."""
_FORM = "an object with name, step, params and tags, and nothing else"


def read_label_files(log: Path, files: Iterable[Path]) -> tuple[Labels, list[str]]:
    """Return what the files beside a log say, each winning over those before it, and what to note of them."""
    labels, notes = Labels(), []
    for path in files:
        content, fault = _read_object(path)
        found = _parse(content) if content and not set(content) - _KEYS else None
        if found is not None:
            labels = _override(labels, found)
        elif path.name in {LABEL_FILE, f"{log.name}.json"}:
            # a file of another name may be anything
            notes.append(f"{path.name} is not read as labels: it is {fault or f'not {_FORM}'}.")
    return labels, notes


def _override(labels: Labels, nearer: Labels) -> Labels:
    return Labels(
        name=nearer.name or labels.name,
        step=nearer.step or labels.step,
        params=override_pairs(labels.params, nearer.params),
        tags=override_pairs(labels.tags, nearer.tags),
    )


def _read_object(path: Path) -> tuple[Mapping[str, Any] | None, str]:
    """Return the object that a file holds, numbers as they are written, or why there is none."""
    try:
        if path.stat().st_size > _LONGEST:
            return None, "too large"
        content = parse_json(path.read_text(encoding="utf-8-sig"), parse_number=str)
    except (OSError, ValueError, RecursionError):
        return None, "damaged"
    return (content, "") if isinstance(content, dict) else (None, "")


def _parse(content: Mapping[str, Any]) -> Labels | None:
    """Return labels, None where a value is neither a text, a number nor a truth value."""
    params, tags = content.get("params", {}), content.get("tags", {})
    if not isinstance(params, dict) or not isinstance(tags, dict):
        return None
    texts = {key: content[key] for key in ("name", "step") if key in content}
    if not all(isinstance(value, str | bool | None) for value in (*params.values(), *tags.values(), *texts.values())):
        return None
    return Labels(
        name=_text(texts.get("name")),
        step=_text(texts.get("step")),
        params=_pairs(params),
        tags=_pairs(tags),
    )


def _text(value: object) -> str | None:
    """Return a value as JSON writes it; nothing for an empty one."""
    return str(value).lower() if isinstance(value, bool) else str(value or "") or None


def _pairs(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, value in values.items() if name and (text := _text(value)))

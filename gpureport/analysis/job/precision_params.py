"""Numeric precision by the params of a run."""

import re
from collections.abc import Iterable

_SWITCHES = {"amp", "fp16", "bf16", "half", "autocast", "float16", "bfloat16"}
_NAMES = _SWITCHES | {"precision", "dtype"}
_OTHERS = {"data", "label", "labels", "target", "image", "input", "save", "checkpoint", "ckpt", "val", "eval", "test"}
_OFF = {"false", "no", "none", "off", "0", "null", ""}
_ON = {"true", "yes", "on", "1", "o1", "o2", "o3"}
_FULL = {"32", "fp32", "float32", "float", "full", "32 true", "torch float32", "single"}
_REDUCED = {"fp8", "fp16", "bf16", "half", "float16", "bfloat16", "float8", "mixed", "16", "amp", "transformer"}


def find_precision_param(params: Iterable[tuple[str, str]]) -> tuple[str, bool] | None:
    """Return the param that sets the precision, as `name=value`, and whether all arithmetic is in full precision.

    Names that end with precision, dtype, amp, fp16, bf16, half or autocast count, except those of data, of an
    evaluation or of what is saved. A param that means less than 32 bits decides. None if no param sets it.
    """
    full = None
    for name, value in params:
        words = re.findall(r"[a-z]+[0-9]*", name.lower())
        if not words or words[-1] not in _NAMES or _OTHERS & set(words):
            continue
        reduced = _is_reduced(name=words[-1], mixed="mixed" in words, value=value.strip().lower())
        if reduced:
            return f"{name}={value}", False
        if reduced is False and full is None:
            full = f"{name}={value}"
    return None if full is None else (full, True)


def _is_reduced(*, name: str, mixed: bool, value: str) -> bool | None:
    """Return whether a param says less than 32 bits, None where it does not say."""
    words = " ".join(re.findall(r"[a-z0-9]+", value))
    if set(words.split()) & _REDUCED:
        return True
    if name in _SWITCHES or mixed:
        return True if words in _ON else False if words in _OFF | _FULL else None
    return False if words in _FULL else None

"""Figures in words, as sentences of findings need them; how numbers are set is `number_format`'s."""

import re
from collections.abc import Sequence

from gpureport import number_format

percent = number_format.format_percent
duration = number_format.format_duration
gpu_time = number_format.format_gpu_time
size = number_format.format_memory
megahertz = number_format.format_clock
number = number_format.format_number

_PAIR = 2
_NAMED = 8


PEERS_MEAN = "median of the means of its peers"
"""Statistic of what the other GPUs did, beside the mean of one."""


def gpu_name(device: str) -> str:
    """Return a GPU's name for a sentence: `GPU 0`, `GPU 0 of node_1`."""
    node, _, local = device.rpartition("/")
    return f"GPU {local.removeprefix('gpu:')}" + (f" of {node}" if node else "")


def gpu_names(devices: Sequence[str], everybody: Sequence[str]) -> str:
    """Return several GPUs' names for a sentence: `GPU 0`, `both GPUs`, `all 8 GPUs`, `GPU 0, GPU 1 and GPU 3`.

    Of more than can be read their number: `63 of 64 GPUs`.
    """
    if len(devices) == 1:
        return gpu_name(devices[0])
    if set(devices) >= set(everybody):
        return "both GPUs" if len(devices) == _PAIR else f"all {len(devices)} GPUs"
    if len(devices) > _NAMED:
        return f"{len(devices)} of {len(everybody)} GPUs"
    names = [gpu_name(device) for device in sorted(devices, key=_natural_order)]
    return ", ".join(names[:-1]) + " and " + names[-1]


def capitalize(text: str) -> str:
    """Return text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _natural_order(device: str) -> list[tuple[str, int]]:
    """Return a key by which numbers in names sort as numbers."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", device)
    return [(text, int(number or -1)) for text, number in parts]


def count_of(count: int, what: str) -> str:
    """Return a count with its noun: `1 episode`, `3 episodes`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"

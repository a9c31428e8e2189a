"""Formats numbers and GPU names for sentences, and fills in templates."""

import re
from collections.abc import Callable, Sequence

from gpureport import number_format
from gpureport.parsing import split_numbers

percent = number_format.format_percent
duration = number_format.format_duration
gpu_time = number_format.format_gpu_time
size = number_format.format_memory
megahertz = number_format.format_clock
number = number_format.format_number

_PAIR, _NAMED = 2, 8
_NAME, _CHOICE = re.compile(r"{([^{}:]+)(?::([^{}]*))?}"), re.compile(r"\[([^\[\]]*)\]")

PEERS_MEAN = "median of the means of its peers"
NOT_PREALLOCATED = "preallocation: no single step took 60% of the memory and kept it"


def gpu_name(device: str) -> str:
    node, _, local = device.rpartition("/")
    return f"GPU {local.removeprefix('gpu:')}" + (f" of {node}" if node else "")


def gpu_names(devices: Sequence[str], everybody: Sequence[str]) -> str:
    """Return GPU names as in `both GPUs`, `all 8 GPUs` or `GPUs 0, 1 and 3`."""
    if len(devices) == 1:
        return gpu_name(devices[0])
    if set(devices) >= set(everybody):
        return "both GPUs" if len(devices) == _PAIR else f"all {len(devices)} GPUs"
    if len(devices) > _NAMED:
        return f"{len(devices)} of {len(everybody)} GPUs"
    ordered = sorted(devices, key=split_numbers)
    node = ordered[0].rpartition("/")[0]
    numbers = [device.rpartition("/")[2] for device in ordered]
    if any(device.rpartition("/")[0] != node for device in ordered):
        return join_words([gpu_name(device) for device in ordered])
    return f"GPUs {join_words([one.removeprefix('gpu:') for one in numbers])}" + (f" of {node}" if node else "")


def join_words(words: Sequence[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])


def capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def count_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def fill_template(
    text: str, know: Callable[[str, str], object], fill: Callable[[str, str], str], *, in_full: bool = False
) -> str:
    """Return the filled template. With `in_full`, return "" if a name is unknown.

    `[a|b]` becomes the first choice whose names are all known. `{n:run}` prints a count with its noun. `{flag:?}`
    prints nothing but must be known.
    """

    def is_known(choice: str) -> bool:
        return all(know(*name) for name in _NAME.findall(choice))

    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda choice: next(filter(is_known, choice[1].split("|")), ""), text)
    text = "" if in_full and not is_known(text) else text
    return _NAME.sub(lambda name: "" if name[2] == "?" else fill(name[1], name[2] or ""), text)

"""Columns told by how their cells are written."""

import re
from collections.abc import Callable

from gpureport.columns import strings
from gpureport.importers.delimited import stamps
from gpureport.importers.delimited.layout import STAMP
from gpureport.importers.nvidia_smi.guessing.said import Said, likely, sure, unnamed

_HEX = r"[0-9A-Fa-f]"
UUID = re.compile(rf"(?:GPU|MIG)-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")
BUS = re.compile(rf"(?:{_HEX}{{4}})?{_HEX}{{4}}:{_HEX}{{2}}:{_HEX}{{2}}\.{_HEX}")
STATE = re.compile(r"P(?:1[0-5]|[0-9])")
MASK = re.compile(rf"0x{_HEX}{{16}}")
MODEL = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID)[ -][A-Za-z0-9][\w .()/+-]*")
_DRIVER = re.compile(r"\d{3}\.\d{2,3}\.\d{2}")
_BIOS = re.compile(rf"{_HEX}{{2}}(?:\.{_HEX}{{2}}){{4}}")
_SUPPORTED = 8
"""Bits or more that `clocks_event_reasons.supported` has set; so many reasons never hold at once."""

_FORMS: tuple[tuple[re.Pattern[str], Said], ...] = (
    (UUID, sure("uuid", "GPU ids")),
    (BUS, sure("pci.bus_id", "PCI bus ids")),
    (STATE, sure("pstate", "performance states")),
    (MODEL, sure("name", "names of GPU models")),
    (_DRIVER, sure("driver_version", "driver versions")),
    (_BIOS, sure("vbios_version", "versions of the video BIOS")),
)


def is_stamp(texts: list[str]) -> bool:
    """Return whether all texts are time stamps."""
    return bool(texts) and bool(stamps.parse(strings(texts))[1].all())


def name(texts: list[str]) -> Said | None:
    """Return what a column is whose cells leave no choice, None when they are plain numbers or words.

    Args:
        texts: its different texts, absent values aside.
    """
    if not texts:
        return unnamed("no cell holds a value")
    if is_stamp(texts):
        return sure(STAMP, "time stamps")
    for form, said in _FORMS:
        if _all(form.fullmatch, texts):
            return said
    return _mask(texts) if _all(MASK.fullmatch, texts) else None


def _all(matches: Callable[[str], object], texts: list[str]) -> bool:
    return all(matches(text) for text in texts)


def _mask(texts: list[str]) -> Said:
    """Return what a column of bit masks is: the reasons that hold, not those that are supported."""
    masks = [int(text, 16) for text in texts]
    if len(masks) == 1 and masks[0].bit_count() >= _SUPPORTED:
        return sure("clocks_event_reasons.supported", "one bit mask with most reasons set")
    if any(masks) and max(masks).bit_length() <= 16:  # noqa: PLR2004 - NVML defines reasons in the lowest bits
        return sure("clocks_event_reasons.active", "bit masks of clock event reasons")
    return likely("clocks_event_reasons.active", "bit masks without any bit set")

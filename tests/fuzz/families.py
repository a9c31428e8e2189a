"""The families of forms that are damaged, under one shape."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import host_mutations, mutations, other_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Forms that are damaged and read in one way."""

    forms: tuple[str, ...]
    seeds: Callable[[str], list[bytes]]
    """Logs of a form as they are before they are damaged."""
    mutated: Callable[[str, int], bytes]
    """The case of a form and a number."""
    ending: Callable[[Path, str, int], str]
    """How the reading of a case ended: `read`, or the class of the project's error."""


FAMILIES = {
    "host": Family(
        forms=tuple(host_mutations.FORMS),
        seeds=host_mutations.seeds,
        mutated=host_mutations.mutated,
        ending=lambda path, _, number: host_mutations.ending(path, number),
    ),
    "other_tools": Family(
        forms=tuple(other_tools.FORMS),
        seeds=other_tools.seeds,
        mutated=other_tools.mutated,
        ending=other_tools.ending,
    ),
    "nvidia_smi": Family(
        forms=mutations.FORMS,
        seeds=mutations.seeds,
        mutated=mutations.mutated,
        ending=lambda path, _, number: mutations.ending(path, number),
    ),
}
FORMS = tuple(f"{name}/{form}" for name, family in FAMILIES.items() for form in family.forms)
"""Every form with its family's name before it: two write something called dmon."""


def family(form: str) -> tuple[Family, str]:
    """Return the family of a form of `FORMS`, and what the family calls it."""
    name, _, own = form.partition("/")
    return FAMILIES[name], own

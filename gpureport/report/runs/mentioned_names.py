"""The names of people and machines that a run mentions."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from gpureport.label_tags import list_personal_tags
from gpureport.recording import Run
from gpureport.report.runs.network_names import find_named_machines, list_machines, names_machine

_WORDS = "|".join(("owner", "author", "host", "hostname", "machine", "email", *list_personal_tags()))
_PERSONAL = re.compile(rf"(?:^|[._/-])(?:{_WORDS})(?:$|[._/-]|name)", re.IGNORECASE)
"""Keys of params and tags whose values name a person or a machine."""
_HOME = re.compile(r"[\\/](?:home|Users|users)[\\/]([^\\/\s]+)")


def is_personal(key: str) -> bool:
    """Return whether the value of a param or tag names a person or a machine, by its key."""
    return _PERSONAL.search(key) is not None


def list_own_names(run: Run) -> Iterator[str]:
    """Yield the name of a run if it merely repeats the name of its file or folder."""
    paths, last = [PurePath(source.locator) for source in run.sources], PurePath(run.name).parts[-1:]
    if not paths or any(last in {(path.stem,), (path.name,), (path.parent.name,)} for path in paths):
        yield run.name


def list_mentioned_machines(run: Run) -> Iterator[str]:
    """Yield the names of machines that params and tags mention."""
    for key, value in run.params_and_tags:
        if names_machine(key, value):
            yield from list_machines(value)
        yield from find_named_machines(value)


def list_people(run: Run) -> Iterator[str]:
    """Yield the names of people, and what else is personal."""
    for key, value in run.params_and_tags:
        if is_personal(key) and not names_machine(key, value):
            yield from (value, *value.split(", "))
    for text in (*(source.locator for source in run.sources), *(value for _, value in run.params_and_tags)):
        yield from _HOME.findall(text)

"""What changed in the set-up of a step, in words."""

from collections.abc import Sequence

from gpureport.comparison.setup import SettingValue, SetupChange
from gpureport.report.wording import display
from gpureport.report.wording.differences.comparison_reasons import CHECKS

_TRACKER_TAGS = {"mlflow.note.content": "description", "mlflow.source.git.commit": "commit"}
"""Tags of a tracker by their names on its pages."""
_NEPTUNE_PARAMS = "parameters/"
"""Where Neptune's users keep params, by its guides."""
NOT_GIVEN = "not given"
_LISTED = 4
"""Changes that one line names; the others are counted."""
_VALUE = 24
"""Most characters of a name or a value in such a line."""


def list_setup_changes(changes: Sequence[SetupChange], most: int = _LISTED) -> str:
    """Return changes in a line, of which at most some are named: `workers 2 → 14; pin False → True; and 3 more`."""
    named = "; ".join(
        f"{_shorten(_name_in_line(change))} {describe_values(change.values_before, _VALUE)} → "
        f"{describe_values(change.values_after, _VALUE)}"
        for change in changes[:most]
    )
    more = len(changes) - most
    return f"{named}; and {more} more" if more > 0 else named


def describe_values(values: Sequence[SettingValue], length: int | None = None) -> str:
    """Return the values that runs of a step have; where they differ, each with its number of runs."""
    texts = [
        NOT_GIVEN if value.text is None else _shorten(display.clean(value.text), length) or "empty" for value in values
    ]
    if len(values) == 1:
        return texts[0]
    return display.join_words(
        [f"{text} ({display.plural(value.runs, 'run')})" for text, value in zip(texts, values, strict=True)]
    )


def name_setting(change: SetupChange) -> str:
    """Return what changed by the name that people know it by."""
    if change.kind == "hardware":
        return CHECKS.get(change.key, change.key)
    return display.clean(_TRACKER_TAGS.get(change.key, change.key)).removeprefix(_NEPTUNE_PARAMS)


def _name_in_line(change: SetupChange) -> str:
    name = name_setting(change)
    return display.lower_first(name) if change.kind == "hardware" else name


def _shorten(text: str, length: int | None = _VALUE) -> str:
    return text if length is None else display.shorten_middle(text, length)

"""Filters on the runs of a local store: the part of MLflow's filter syntax that needs no server.

A filter is conditions joined by `and`. Each names an attribute, param, metric or tag, a comparison and a value: text
in quotes, or a number for metrics and times. As on a server, a run without the named value does not match.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.trackers.mlflow.run_store import RunInfo, RunLabels, RunStore

_CONDITION = re.compile(
    r"""\s*(?:(?P<entity>\w+)\.)?(?P<key>`[^`]+`|"[^"]+"|[\w./-]+)\s*
    (?P<compare>>=|<=|!=|=|<|>|i?like\b)\s*
    (?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[\d.]+(?:e[-+]?\d+)?)\s*(?P<rest>and\b|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_ENTITIES = {
    "attribute": "attribute", "attributes": "attribute", "attr": "attribute", "run": "attribute",
    "param": "param", "params": "param", "parameter": "param", "parameters": "param",
    "metric": "metric", "metrics": "metric", "tag": "tag", "tags": "tag",
}  # fmt: skip
_TEXT_ATTRIBUTES: dict[str, Callable[[RunInfo], str]] = {
    "status": lambda run: run.status,
    "run_name": lambda run: run.name,
    "run_id": lambda run: run.id,
}
_TIME_ATTRIBUTES: dict[str, Callable[[RunInfo], int | None]] = {
    "start_time": lambda run: run.started,
    "end_time": lambda run: run.ended,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
}
_LIKE = {"like": 0, "ilike": re.IGNORECASE}
_HINT = "for example params.lr = '0.1' and metrics.accuracy > 0.9; a server understands all of MLflow's filters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison.

    Attributes:
        entity: `attribute`, `param`, `metric` or `tag`.
        key: its name.
        compare: how.
        value: text, or a number for metrics and times.
    """

    entity: str
    key: str
    compare: str
    value: str | float

    def holds(self, run: RunInfo, labelled: RunLabels) -> bool:
        """Return whether a run matches."""
        found = self._value_of(run, labelled)
        if found is None:
            return False
        if isinstance(self.value, float):
            return _COMPARISONS[self.compare](float(found), self.value)
        if self.compare in _LIKE:
            return re.fullmatch(_like_pattern(self.value), str(found), _LIKE[self.compare] | re.DOTALL) is not None
        return (found == self.value) is (self.compare == "=")

    def _value_of(self, run: RunInfo, labelled: RunLabels) -> str | float | None:
        if self.entity == "attribute":
            return _TEXT_ATTRIBUTES[self.key](run) if self.key in _TEXT_ATTRIBUTES else _TIME_ATTRIBUTES[self.key](run)
        if self.entity == "metric":
            return dict(labelled.latest).get(self.key)
        return dict(labelled.params if self.entity == "param" else labelled.tags).get(self.key)


def _like_pattern(like: str) -> str:
    parts = {"%": ".*", "_": "."}
    return "".join(parts.get(character, re.escape(character)) for character in like)


def parse_filter(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a filter.

    Raises:
        SettingsError: when it is not understood, or needs a server.
    """
    found, at = [], 0
    while at < len(text):
        match = _CONDITION.match(text, at)
        if match is None or (match["rest"] and match.end() == len(text)):
            raise SettingsError("--filter", f"cannot read {text[at:].strip()!r}", _HINT)
        found.append(_parse_condition(match))
        at = match.end()
    return tuple(found)


def _parse_condition(match: re.Match[str]) -> Condition:
    entity = _ENTITIES.get((match["entity"] or "attribute").lower(), "")
    key, compare, value = match["key"].strip('`"'), match["compare"].lower(), match["value"]
    quoted = value[0] in "'\""
    named = f"{match['entity'] or 'attributes'}.{key}"
    if not entity or (entity == "attribute" and key not in {*_TEXT_ATTRIBUTES, *_TIME_ATTRIBUTES}):
        raise SettingsError("--filter", f"{named} cannot be filtered by without a server", _HINT)
    number = entity == "metric" or (key in _TIME_ATTRIBUTES and entity == "attribute")
    if quoted is number:
        what = "a number without quotes" if number else "text in quotes"
        raise SettingsError("--filter", f"{named} is compared with {what}", _HINT)
    if (not number and compare in {"<", ">", "<=", ">="}) or (number and compare in _LIKE):
        raise SettingsError("--filter", f"{named} cannot be compared by {compare}", _HINT)
    unquoted = re.sub(r"\\(.)", r"\1", value[1:-1])
    return Condition(entity=entity, key=key, compare=compare, value=float(value) if number else unquoted)


def filter_runs(store: RunStore, runs: Sequence[RunInfo], wanted: str | None) -> list[RunInfo]:
    """Return the runs that match a filter, and those that cannot be read; deleted runs only without a filter.

    Raises:
        SettingsError: when the filter is not understood.
    """
    if wanted is None:
        return list(runs)
    conditions = parse_filter(wanted)
    simple = all(condition.entity == "attribute" for condition in conditions)
    nothing = RunLabels(params=(), tags=())
    kept = []
    for run in (each for each in runs if not each.deleted):
        try:
            labelled = nothing if simple and run.fault is None else store.labels(run)
        except SourceError as fault:
            kept.append(replace(run, fault=fault))
            continue
        if all(condition.holds(run, labelled) for condition in conditions):
            kept.append(run)
    return kept


def select_experiment(
    where: str, runs: Sequence[RunInfo], known: Mapping[str, str], experiment: str | None
) -> list[RunInfo]:
    """Return the runs of an experiment; all when None.

    Args:
        where: what a person calls the store.
        runs: runs.
        known: names of the experiments, by id.
        experiment: name or id of an experiment.

    Raises:
        SourceError: when there is no such experiment.
    """
    if experiment is None:
        return list(runs)
    wanted = {key for key, name in known.items() if experiment in {key, name}}
    if not wanted:
        raise no_such_experiment(where, experiment, known.values())
    return [run for run in runs if run.experiment_id in wanted]


def no_such_experiment(where: str, experiment: str, names: Iterable[str]) -> SourceError:
    """Return an error that names experiments of a similar name, else the first ones."""
    known = sorted(set(names))
    close = get_close_matches(experiment, known, n=5, cutoff=0.5) or known[:5]
    return SourceError(where, f"no experiment {experiment!r}", f"it has {', '.join(close) or 'none'}")


def matches_wildcard(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern in which `*` stands for anything; case matters."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None

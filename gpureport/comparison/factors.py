"""Settings that group runs, the order of their values, and what else varied."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpureport.errors import SettingsError
from gpureport.names import group_pairs
from gpureport.redaction import HIDDEN

if TYPE_CHECKING:
    from gpureport.recording import Run

CHAIN_KINDS = ("step", "folder")  # Kinds that form a chain of steps rather than groups.
MOST_FACTORS = 2  # A chart cannot show more grouping factors.
_KEYED = ("param", "tag")
_PLAIN = (*CHAIN_KINDS, "gpu")
_COMMA = re.compile(rf",(?=(?:{'|'.join(_PLAIN)})(?:,|$)|(?:{'|'.join(_KEYED)}):)")
"""Matches a comma between two factors, but not one within a key."""
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s]*)", re.IGNORECASE)
_REPETITION = re.compile(r"(?:^|[^a-z])(?:random_?seed|seed|random_?state|repetition|repeat|replicate|rep|trial)$")
"""Matches names of params that distinguish repetitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A setting that may differ: a `param` or `tag` with its key, `gpu`, `step` or `folder`."""

    kind: str
    key: str = ""

    @property
    def name(self) -> str:
        return self.key or self.kind

    def value(self, run: "Run") -> str | None:
        if self.kind == "gpu":
            return " and ".join(sorted({gpu.model or "a GPU without a name" for gpu in run.gpus})) or "no GPU"
        return self.labels(run).get(self.key)

    def labels(self, run: "Run") -> dict[str, str]:
        return dict(run.params if self.kind == "param" else run.tags)


def parse_factors(text: str) -> tuple[Factor, ...]:
    parts, msg = _COMMA.split(text), ""
    factors = tuple(Factor(kind=kind, key=key) for kind, _, key in (part.partition(":") for part in parts))
    known = [each.kind in (_KEYED if each.key else _PLAIN) for each in factors]
    if not all(known):
        msg = f"{parts[known.index(False)]!r} is not step, folder, gpu, param:KEY or tag:KEY"
    elif len(factors) > MOST_FACTORS:
        msg = f"{text!r} lists {len(factors)} settings, but at most two can form groups"
    elif len(set(factors)) < len(factors):
        msg = f"{text!r} lists a setting twice"
    elif len(factors) > 1 and any(factor.kind in CHAIN_KINDS for factor in factors):
        msg = f"{text!r} mixes steps with groups; use step or folder by itself"
    if msg:
        raise ValueError(msg)
    return factors


def describe_factors(factors: Sequence[Factor]) -> str:
    return " and ".join(factor.name for factor in factors)


def assign_steps(runs: Sequence["Run"], factors: Sequence[Factor]) -> list[tuple[int, str | None]]:
    """Return run indices in step order, with any new labels."""
    kind = factors[0].kind
    if kind == "step":
        return [(place, None) for place in range(len(runs))]
    labels, ranks = _label_by_folder(runs) if kind == "folder" else _label_by_values(runs, factors)
    return [(place, labels[place]) for place in sorted(range(len(runs)), key=ranks.__getitem__)]


def _label_by_folder(runs: Sequence["Run"]) -> tuple[list[str], list[tuple[int, ...]]]:
    folders = []
    for run, folder in zip(runs, step_folders(runs), strict=True):
        if folder is None:
            what = f"the log of run {run.name} is not in its own folder"
            raise SettingsError("--by", what, "pass a folder that contains one folder per step", code="no_step_folder")
        folders.append(folder)
    order = order_folders(runs, folders)[0]
    return folders, [(order.index(folder),) for folder in folders]


def _label_by_values(runs: Sequence["Run"], factors: Sequence[Factor]) -> tuple[list[str], list[tuple[int, ...]]]:
    values = []
    for run in runs:
        for factor in factors:
            if factor.value(run) is None:
                known = ", ".join(sorted(factor.labels(run)))
                hint = f"it has {known}" if known else f"set it with --{factor.kind} {factor.key}=VALUE when ingesting"
                what = f"run {run.name} has no {factor.kind} {factor.key!r}"
                raise SettingsError("--by", what, hint, code=f"no_such_{factor.kind}")
        values.append([factor.value(run) or "" for factor in factors])
    orders = [order_values(column) for column in zip(*values, strict=True)]
    labels = [", ".join(f"{by.name}={value}" for by, value in zip(factors, each, strict=True)) for each in values]
    return labels, [tuple(order.index(value) for order, value in zip(orders, each, strict=True)) for each in values]


def step_folders(runs: Sequence["Run"]) -> list[str | None]:
    """Return the first folder in each log's path that the logs do not share, or None."""
    logs = [None if run.tracked or not run.sources else run.sources[0].locator for run in runs]
    # a `#` may be part of a folder's name
    places = [None if log in {None, "-"} else os.path.dirname(os.path.abspath(str(log))) for log in logs]
    known = [place for place in places if place is not None]
    try:
        shared = len(PurePath(os.path.commonpath(known)).parts) if known else 0
    except ValueError:
        # folders on different drives have no common path
        shared = 0
    return [next(iter(PurePath(place).parts[shared:]), None) if place else None for place in places]


def order_folders(runs: Sequence["Run"], folders: Sequence[str]) -> tuple[list[str], str]:
    """Return the folders in step order, and what determines the order if their names do not."""
    different = list(dict.fromkeys(folders))
    numbers = {folder: int(found[0]) for folder in different if (found := re.match(r"\d+", folder))}
    if len(set(numbers.values())) == len(different):
        ordered = sorted(different, key=numbers.__getitem__)
        return ordered, "" if ordered == sorted(different) else "the numbers in their names"
    if not share_a_clock(runs):
        return sorted(different), "the names of their folders, because not all start times are known"
    starts: dict[str, int] = {}
    for run, folder in zip(runs, folders, strict=True):
        starts[folder] = min(run.started, starts.get(folder, run.started))
    return sorted(different, key=starts.__getitem__), "the start times of their first runs"


def share_a_clock(runs: Sequence["Run"]) -> bool:
    """Return whether all runs have timestamps, and all or none have a time zone."""
    return not any(run.quality.synthetic_time for run in runs) and len({run.timezone is None for run in runs}) <= 1


def find_ungrouped(runs: Sequence["Run"], factors: Sequence[Factor]) -> dict[Factor, list[int]]:
    """Return the indices of runs without a param or tag, by the first factor that each lacks."""
    lacked = (next((factor for factor in factors if factor.value(run) is None), None) for run in runs)
    return group_pairs((factor, place) for place, factor in enumerate(lacked) if factor)


def order_values(values: Iterable[str]) -> list[str]:
    """Return distinct values, sorted if all are numbers with at most one unit, otherwise in the given order."""
    different = list(dict.fromkeys(values))
    numbers = [_NUMBER.fullmatch(value.strip()) for value in different]
    if any(number is None for number in numbers) or len({number[2] for number in numbers if number}) > 1:
        return different
    sizes = {value: float(number[1]) for value, number in zip(different, numbers, strict=True) if number}
    return sorted(different, key=sizes.__getitem__)


def order_levels(column: Sequence[str | None]) -> list[str | None]:
    return [*order_values(value for value in column if value is not None), *([None] if None in column else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedParams:
    """Settings that differ between runs. Settings in `repetitions` and `names` have no effect."""

    factors: tuple[Factor, ...]
    repetitions: tuple[Factor, ...]
    names: tuple[Factor, ...]


def find_varied_params(runs: Sequence["Run"], by: Sequence[Factor]) -> VariedParams:
    """Return the settings that differ between runs, grouping settings first."""
    grouped = {each.key for each in by if each.kind == "param"}
    keys = {key for run in runs for key, value in run.params if HIDDEN not in value} - grouped
    others = [Factor(kind="param", key=key) for key in sorted(keys)]
    if all(factor.kind != "gpu" for factor in by):
        others.append(Factor(kind="gpu"))
    sorts: dict[str, list[Factor]] = {"factors": [*by], "repetitions": [], "names": []}
    is_repeated = len({tuple(each.value(run) for each in by) for run in runs}) < len(runs)
    for factor in others:
        values = [factor.value(run) for run in runs]
        # a name differs in every run; it may be a number only if groups are repeated
        are_numbers = all((found := _NUMBER.fullmatch(value or "")) and not found[2] for value in values)
        is_name = len(set(values)) == len(runs) and (is_repeated or not are_numbers)
        kind = "repetitions" if _REPETITION.search(factor.key.lower()) else "names" if is_name else "factors"
        if len(set(values)) > 1:
            sorts[kind].append(factor)
    return VariedParams(**{kind: tuple(factors) for kind, factors in sorts.items()})

"""The namespaces of hardware series in a run: one for each process."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpureport.importers.trackers.neptune_hardware import dropped_zeros, series_meanings
from gpureport.importers.trackers.neptune_hardware.name_map import NameMap
from gpureport.importers.trackers.neptune_hardware.series_meanings import SeriesMeaning

_RECIPE = re.compile(r"(?P<namespace>.+?)/monitoring/(?P<leaf>gpu/\d+/[^/]+|cpu/percent)")
_BELOW = re.compile(r"(?:cpu|memory|disk|network|process|gpu)/.+")
_PREFIX = re.compile(r"^(?:monitoring|runtime)(?:/|$)")
_HASH = re.compile(r"[0-9a-f]{8}")
_NO_STAGE = re.compile(r"(?:runtime|system)(?:/\d+)?")
"""Namespaces the recipe takes when nobody chose one; the number is that of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Hardware series of one process.

    Attributes:
        path: what their paths begin with.
        stage: name of the process; None if its namespace has none.
        client: whether the client's own monitor wrote them, which drops zeros.
        leaves: meaning of each known series, by path.
        others: paths of its unknown series.
        bare: whether it names a single GPU, without a number.
        recipe: whether the monitoring recipe wrote them.
    """

    path: str
    stage: str | None
    client: bool
    leaves: Mapping[str, SeriesMeaning]
    others: tuple[str, ...] = ()
    bare: bool = False
    recipe: bool = False

    def below(self, path: str) -> bool:
        """Return whether a series is below the recipe's namespace."""
        return self.recipe and path.startswith(f"{self.path}/monitoring/")

    @property
    def gpus(self) -> int:
        """Number of GPUs it names."""
        return len({each.gpu for each in self.leaves.values() if each.gpu is not None})


def find_namespaces(series: Iterable[str], scalars: Iterable[str], chosen: NameMap) -> list[Namespace]:
    """Return the namespaces of a run, by path.

    Args:
        series: paths of its series of numbers.
        scalars: paths of its single values.
        chosen: the meaning of names that a person chose.
    """
    series, scalars = sorted(series), [*scalars, *(f"{namespace}/hostname" for namespace in chosen.namespaces)]
    own = _mapped_namespace(series, chosen)
    left = [path for path in series if path not in own.leaves]
    spaces = [
        _client_namespace(path, leaves) for path, leaves in dropped_zeros.find_monitor_namespaces(left, scalars).items()
    ]
    spaces += _recipe_namespaces(left)
    spaces += [own] if own.leaves else []
    return sorted((each for each in spaces if each.leaves), key=lambda each: each.path)


def _client_namespace(path: str, found: Iterable[str]) -> Namespace:
    meanings = {f"{path}/{leaf}": series_meanings.gauge_meaning(leaf) for leaf in found}
    return Namespace(
        path=path,
        stage=stage_name(path),
        client=True,
        leaves={leaf: meaning for leaf, meaning in meanings.items() if meaning is not None},
        others=tuple(leaf for leaf, meaning in meanings.items() if meaning is None),
        bare=any(path.endswith(("/gpu", "/gpu_memory", "/gpu_power")) for path in meanings),
    )


def _recipe_namespaces(series: list[str]) -> list[Namespace]:
    """Return the namespaces of the recipe, with all series below their `monitoring/`."""
    paths = dict.fromkeys(match["namespace"] for path in series if (match := _RECIPE.fullmatch(path)))
    spaces = []
    for path in paths:
        start = f"{path}/monitoring/"
        inside = [each for each in series if each.startswith(start) and _BELOW.fullmatch(each[len(start) :])]
        meanings = {each: series_meanings.recipe_meaning(each[len(start) :]) for each in inside}
        leaves = {each: meaning for each, meaning in meanings.items() if meaning is not None and meaning.known}
        others = tuple(
            each for each in inside if each not in leaves and not each.endswith(series_meanings.DERIVED_LEAVES)
        )
        name = None if _NO_STAGE.fullmatch(path) else stage_name(path)
        space = Namespace(path=path, stage=name, client=False, leaves=leaves, others=others, recipe=True)
        spaces.append(space)
    return spaces


def _mapped_namespace(series: list[str], chosen: NameMap) -> Namespace:
    leaves = {path: chosen.series[path] for path in series if path in chosen.series}
    return Namespace(path="--map", stage=None, client=False, leaves=leaves)


def stage_name(path: str) -> str | None:
    """Return the name of the process of a namespace: its last part; `process-<hash>` for a generated one."""
    name = _PREFIX.sub("", path).strip("/")
    if not name:
        return None
    return f"process-{name}" if _HASH.fullmatch(name) else name

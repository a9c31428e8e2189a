"""Reads a job's set-up from params and tags, by the last part of their names (`params.toml`)."""

import re
import tomllib
from collections.abc import Iterable
from enum import StrEnum
from math import floor
from pathlib import Path
from typing import NamedTuple

from gpureport.analysis import phrases

_WORDS = tomllib.loads(Path(__file__).with_name("params.toml").read_text(encoding="utf-8"))
_FIELDS = {name: field for field, names in _WORDS.pop("names").items() for name in names.split()}
_SETTINGS = {*_FIELDS.values(), "precision"}
_FRAMEWORKS = {word: name for name, words in _WORDS.pop("frameworks").items() for word in words.split()}
_SETS = {name: set(words.split()) for name, words in _WORDS.items()}
_ON, _OFF = _SETS["on"], _SETS["off"] | {""}
_CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
_FULL = {"32", "fp32", "float32", "float", "full", "32 true", "torch float32", "single"}
_LEFT_TO_LIBRARY = {"-1", "auto", "autotune", "tf.data.autotune"}


class Framework(StrEnum):
    PYTORCH = "PyTorch"
    TENSORFLOW = "TensorFlow"
    JAX = "JAX"


class Setting(NamedTuple):
    text: str
    value: float


class CoreCount(NamedTuple):
    """The number of logical cores of a host (or a process with one GPU), and of GPUs that share them."""

    cores: float
    gpus: int
    is_of_process: bool = False

    @property
    def most_workers(self) -> int:
        return max(floor(self.cores / self.gpus), 1)

    @property
    def words(self) -> str:
        cores = phrases.count_of(round(self.cores), "core")
        whose = f"each process has {cores}"
        return whose if self.is_of_process else f"the machine has {cores} for {phrases.count_of(self.gpus, 'GPU')}"


class JobParams(dict[str, Setting]):
    """Settings by name. An attribute is None if no param sets it or two params disagree.

    `workers` is per process, `cores` per host or job. `precision` is 1 for 16 bits or fewer.
    """

    def __getattr__(self, name: str) -> Setting | None:
        if name in _SETTINGS:
            return self.get(name)
        raise AttributeError(name)

    def count_cores(self, gpus: int) -> CoreCount | None:
        if self.cores_per_process is not None and self.cores_per_process.value > 0:
            return CoreCount(self.cores_per_process.value, 1, is_of_process=True)
        return CoreCount(self.cores.value, gpus) if gpus and self.cores and self.cores.value > 0 else None


def read_params(params: Iterable[tuple[str, str]], cores: float | None = None) -> JobParams:
    """Return the settings in params and tags. `cores` is the default number of cores."""
    known, settings = list(params), dict[str, list[Setting]]()
    for name, value in sorted(known):
        words, text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), value.strip().lower()
        field = _FIELDS.get(re.split(r"[./:]", words)[-1].lstrip("-").replace("-", "_"))
        is_of_others = _SETS["other_scopes"] & set(re.findall(r"[a-z0-9]+", words))
        number = None if field is None or is_of_others else _parse_value(field, text)
        if field is not None and number is not None:
            settings.setdefault(field, []).append(Setting(f"{name}={value}", number))
            if field == "compiled" and text.startswith(_CUDA_GRAPH_MODES):
                settings.setdefault("cuda_graphs", []).append(settings[field][-1])
    agreed = {field: values[0] for field, values in settings.items() if len({one.value for one in values}) == 1}
    if (said := find_precision_param(known)) is not None:
        agreed["precision"] = Setting(said[0], float(not said[1]))
    if "cores" not in agreed and cores and cores > 0:
        agreed["cores"] = Setting(phrases.count_of(round(cores), "core"), cores)
    return JobParams(agreed)


def _parse_value(field: str, value: str) -> float | None:  # noqa: PLR0911 - one for each form
    if field == "pretrained":  # its value may be a path or a model
        return float(value not in _OFF)
    if field == "cudnn_benchmark" and value not in _ON | _OFF:  # its value may name a dataset
        return None
    if field in _SETS["switches"]:
        return 0.0 if value in _OFF else 1.0 if value in _ON or re.fullmatch(r"[a-z][a-z_-]+", value) else None
    if value in _LEFT_TO_LIBRARY:
        return float("inf")
    if value in _ON | _OFF and not value.isdecimal():
        return float(value in _ON)
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def find_precision_param(params: Iterable[tuple[str, str]]) -> tuple[str, bool] | None:
    full = None
    for name, value in params:
        words = re.findall(r"[a-z]+[0-9]*", name.lower())
        if not words or words[-1] not in _SETS["precision"] or _SETS["precision_of_others"] & set(words):
            continue
        is_switch = words[-1] in _SETS["precision_switches"] or "mixed" in words
        said = " ".join(re.findall(r"[a-z0-9]+", value.lower()))
        if set(said.split()) & _SETS["reduced"] or (is_switch and said in _SETS["precision_on"]):
            return f"{name}={value}", False
        if full is None and (said in _FULL or (is_switch and said in _SETS["precision_off"] | {""})):
            full = f"{name}={value}"
    return None if full is None else (full, True)


def find_framework(params: Iterable[tuple[str, str]]) -> Framework | None:
    named = set[str]()
    for name, value in params:
        words, said = (re.findall(r"[a-z0-9]+", text.lower()) for text in (name, value))
        told = words if value.strip().lower() not in _OFF else []
        if words and words[-1] in _SETS["framework_params"]:
            told = [*told, *("tensorflow" if word == "tf" else word for word in said)]
        named |= {_FRAMEWORKS[word] for word in told if word in _FRAMEWORKS}
    return Framework(named.pop()) if len(named) == 1 else None

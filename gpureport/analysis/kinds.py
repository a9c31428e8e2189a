"""What `kinds.toml` says of each kind of finding."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.analysis.phrases import capitalize

_OPTIONAL, _NAME = re.compile(r"\[([^]]*)\]"), re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """A kind of finding that explains another one, which lies `during` it, `since` its beginning, or `ever`.

    Any cause of either counts where none is named. With `needs_place` it must name its devices and its time.
    """

    kind: str
    causes: Sequence[str] = ()
    explains: Sequence[str] = ()
    on_any_device: bool = False
    needs_place: bool = False
    when: str = "during"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """One kind of finding, by its name in JSON and on the command line.

    `says` has sentences by cause, or what its rule chooses by; `steps` what to do by cause, the most promising first;
    `follows` kinds that may be its root, the preferred first. `gpu_time_part` names its part of its class of GPU time,
    `stretch` one stretch of it. `report` is what a report says; the head of `kinds.toml` explains its keys.
    """

    name: str
    title: str
    meaning: str
    steps: Mapping[str, tuple[str, ...]]
    says: Mapping[str, str]
    follows: tuple[RootCause, ...]
    gpu_time_class: str = ""
    gpu_time_part: str = ""
    cause_titles: Mapping[str, str]
    stretch: str = ""
    always_loses_time: bool = False
    needs_gpus: bool = True
    judges_few_samples: bool = False
    report: Mapping[str, Any]

    def say(self, case: str | None, **words: str) -> str:
        """Return the sentence of a finding: `{name}` is a word, and what stands in brackets goes without it."""
        said = self.says.get("", "")
        own = self.says.get(case or "", said)
        said, words = (said, words | {"why": own.format_map(words)}) if "{why}" in said else (own, words)
        said = _OPTIONAL.sub(lambda part: part[1] if all(words[name] for name in _NAME.findall(part[1])) else "", said)
        return capitalize(said.format_map(words))


def _by_case(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {"": said}


def _expand_steps(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield from _expand_steps(GROUPS[name[1:]]) if name.startswith("@") else (name,)


def _read_kind(name: str, said: dict[str, Any]) -> KindDescription:
    own = {key: said.pop(key) for key in KindDescription.__slots__ if key in said}
    own |= {
        "says": _by_case(own.get("says", "")),
        "steps": {cause: tuple(_expand_steps(steps)) for cause, steps in _by_case(own["steps"]).items()},
        "follows": tuple(
            RootCause(kind=each) if isinstance(each, str) else RootCause(**each) for each in own.get("follows", ())
        ),
        "cause_titles": own.get("cause_titles", {}),
    }
    return KindDescription(name=name, report=said, **own)


_SAID = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
GROUPS, FIGURES, ACTIONS = (_SAID.pop(f"@{name}") for name in ("steps", "figures", "do"))
KINDS = {name: _read_kind(name, said) for name, said in _SAID.items()}

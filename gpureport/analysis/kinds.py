"""What is said of each kind of finding, as `kinds.toml` has it: its names, its advice, and what it may follow from."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

from gpureport.analysis.phrases import capitalize
from gpureport.findings import Confidence, Evidence, Finding, Interval, Severity


class TimeRelation(Enum):
    """How the time of a finding must lie to that of its root."""

    DURING = "during the root, for at least 90% of its time"
    SINCE = "after the beginning of the root, for at least 90% of its time"
    EVER = "at any time"


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """A kind of finding that explains another one.

    Attributes:
        kind: the kind that explains.
        causes: causes the explaining finding must have; any when empty.
        explains: causes of the explained finding that it accounts for; any when empty.
        on_any_device: whether it explains findings on other devices as well.
        needs_place: whether it must name its devices and its time; else it may stand for all of both.
        when: how their times must lie.
    """

    kind: str
    causes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    on_any_device: bool = False
    needs_place: bool = False
    when: TimeRelation = TimeRelation.DURING


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePath:
    """Steps of the catalogue, the most promising first, for some causes of a kind; for any where none is named."""

    steps: tuple[str, ...]
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """One kind of finding.

    Attributes:
        name: the kind, as it stands in JSON and on the command line.
        title: its title in reports.
        meaning: what it is, in one plain sentence.
        says: the sentence of a finding, by its cause or by what its rule chooses by.
        advice: every recommendation that a finding of it may give, by its cause or by what its rule chooses by.
        paths: steps to take; the first path that fits the cause of a finding is its own.
        follows: kinds that may be its root, the preferred one first.
        gpu_time_class: class of GPU time that its time counts to; empty where it claims none.
        gpu_time_part: what its part of that class is called, as in "waiting for input, *for storage*".
        cause_titles: titles of the causes that say more than that of the kind.
        stretch: noun for one stretch of time of a finding, where several are counted.
        always_loses_time: whether a finding without a figure of lost time lost an unknown amount, rather than none.
        needs_gpus: whether it says something of GPUs, so that a run without any cannot be judged.
        report: what a report says: `tells` the sentence on its findings, `why` its end by cause, `extent` how much
            there is, `do` what to do, `sure` what would settle a doubt, `tiles` figures to begin with.
        judges_few_samples: whether a handful of samples is enough, or the rule itself says that it is not.
    """

    name: str
    title: str
    meaning: str
    says: Mapping[str, str]
    advice: Mapping[str, str]
    paths: tuple[AdvicePath, ...]
    follows: tuple[RootCause, ...]
    gpu_time_class: str
    gpu_time_part: str
    cause_titles: Mapping[str, str]
    stretch: str
    always_loses_time: bool
    needs_gpus: bool
    judges_few_samples: bool
    report: Mapping[str, Any]

    def say(self, case: str | None, **words: str) -> str:
        """Return the sentence of a finding: `{name}` is a word, and what stands in brackets goes without its words.

        The sentence of any case has `{why}` where its cases only say why.
        """
        said = self.says.get("", "")
        own = self.says.get(case or "", said)
        said, words = (said, words | {"why": own.format_map(words)}) if "{why}" in said else (own, words)
        said = _OPTIONAL.sub(lambda part: part[1] if all(words[name] for name in _NAME.findall(part[1])) else "", said)
        return capitalize(said.format_map(words))

    def advise(self, case: str | None) -> str:
        """Return the recommendation of a case."""
        return self.advice.get(case or "", self.advice.get("", ""))

    def finding(  # noqa: PLR0913 - what a finding states, each by name
        self,
        severity: Severity,
        confidence: Confidence,
        devices: Iterable[str],
        evidence: Iterable[Evidence],
        *,
        spans: Iterable[Interval] = (),
        lost: float | None = None,
        cause: str | None = None,
        case: str | None = None,
        samples: int = 0,
        ruled_out: Iterable[str] = (),
        **words: str,
    ) -> Finding:
        """Return a finding of this kind, with the sentence and the advice of a case; that is its cause by default."""
        return Finding(
            kind=self.name,
            severity=severity,
            confidence=confidence,
            devices=tuple(devices),
            intervals=tuple(spans),
            evidence=tuple(evidence),
            lost_gpu_seconds=lost,
            cause=cause,
            samples=samples,
            ruled_out=tuple(ruled_out),
            summary=self.say(case or cause, **words),
            recommendation=self.advise(case or cause),
        )


_OPTIONAL, _NAME = re.compile(r"\[([^]]*)\]"), re.compile(r"{(\w+)}")


def _by_case(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {"": said}


def expand_steps(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of steps, those of a group (`@loading`) in its place."""
    for name in names:
        yield from expand_steps(GROUPS[name[1:]]) if name.startswith("@") else (name,)


def _read_root(said: str | dict[str, Any]) -> RootCause:
    if isinstance(said, str):
        return RootCause(kind=said)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    return RootCause(**values | ({"when": TimeRelation[said["when"].upper()]} if "when" in said else {}))


def _read_kind(name: str, said: dict[str, Any]) -> KindDescription:
    paths = groupby(_by_case(said["steps"]).items(), key=lambda path: path[1])
    return KindDescription(
        name=name,
        title=said["title"],
        meaning=said["meaning"],
        says=_by_case(said.get("says", "")),
        advice={
            case: _SHARED[text[1:]] if text.startswith("@") else text for case, text in _by_case(said["advice"]).items()
        },
        paths=tuple(
            AdvicePath(steps=tuple(expand_steps(steps)), causes=tuple(cause for cause, _ in causes if cause))
            for steps, causes in paths
        ),
        follows=tuple(map(_read_root, said.get("follows", ()))),
        gpu_time_class=said.get("class", ""),
        gpu_time_part=said.get("part", ""),
        cause_titles=said.get("cause_titles", {}),
        stretch=said.get("stretch", ""),
        always_loses_time=said.get("always_loses_time", False),
        needs_gpus=said.get("needs_gpus", True),
        judges_few_samples=said.get("judges_few_samples", False),
        report={name: said[name] for name in ("tells", "why", "extent", "do", "sure", "tiles") if name in said},
    )


_SAID = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
_SHARED, GROUPS, FIGURES, ACTIONS = (_SAID.pop(f"@{name}") for name in ("advice", "steps", "figures", "do"))
KINDS = {name: _read_kind(name, said) for name, said in _SAID.items()}
"""Every kind by its name."""

"""Kinds and rules as declared in `kinds.toml` and `rules.toml`, and the context that rules read."""

import re
import tomllib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpureport.analysis import phrases
from gpureport.analysis.results import Job, ObservedJob
from gpureport.analysis.series.device_series import DeviceSeries, Memo, pick
from gpureport.analysis.series.intervals import Spans, to_intervals, to_spans
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Provenance, Severity, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Recording

Words = Mapping[str, Any]
"""Texts, flags, and values in base units, whose formats are in "@units"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """A kind that explains findings of another kind.

    `when` specifies when the other finding occurs: `during` the root, `since` its start, or `ever`.
    `causes` lists the possible causes of the root, and `explains` those of the other finding.
    With `needs_place`, the root must have devices and times.
    """

    kind: str
    causes: Sequence[str] = ()
    explains: Sequence[str] = ()
    on_any_device: bool = False
    needs_place: bool = False
    when: str = "during"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """A kind of finding, whose name is used in JSON and on the command line.

    `says` contains sentences and `steps` advice, both by cause or case. `follows` lists possible
    roots. The best steps and roots come first. The top of `kinds.toml` explains all keys.
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
    ruled_out: Sequence[str] = ()
    stretch: str = ""
    always_loses_time: bool = False
    needs_gpus: bool = True
    judges_few_samples: bool = False
    report: Mapping[str, Any]

    def say(self, case: str | None, words: Words) -> str:
        """Return a case's sentence. Empty texts, false flags and NaN count as unknown."""
        own, said = self.says.get(case or ""), self.says.get("", "")
        if own is not None and "{why}" in said:
            words, own = {**words, "why": _fill(own, words)}, said
        return phrases.capitalize(_fill(said if own is None else own, words))


def _fill(template: str, words: Words) -> str:
    def write(name: str, noun: str) -> str:
        word = words[name]
        if word is None or isinstance(word, str | bool) or isnan(word):
            return word if isinstance(word, str) else "yes" if word is True else ""
        return phrases.count_of(word, noun) if noun else _FORMATS[_UNITS[name]](word)

    return phrases.fill_template(template, write, write)


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


_KINDS, _SAID = (
    tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8")) for name in ("kinds.toml", "rules.toml")
)
GROUPS, FIGURES, ACTIONS, _NAMED = (_KINDS.pop(f"@{name}") for name in ("steps", "figures", "do", "units"))
_UNITS = {name: unit for unit, names in _NAMED.items() for name in names.split()}
_FORMATS: dict[str, Callable[[float], str]] = {
    "share": phrases.percent,
    "time": phrases.duration,
    "GPU time": phrases.gpu_time,
    "memory": phrases.size,
    "clock": phrases.megahertz,
    "power": "{:.0f} W".format,
    "temperature": "{:.0f} °C".format,
    "count": "{:,.0f}".format,
}
KINDS = {name: _read_kind(name, said) for name, said in _KINDS.items()}
_METRICS, _SHARED, FORMER = _SAID.pop("@metrics"), _SAID.pop("@limits"), _SAID.pop("@former")["settings"].split()
RULE_NAMES = tuple(_SAID)  # every rule, in order


@dataclass(frozen=True, kw_only=True)
class Context(Memo):
    """The data that a rule may read. Mappings are keyed by device id.

    `series` has the samples within jobs, and `all_series` all samples. `active` is the time from
    first to last sustained activity on each GPU, and `window` on any GPU.
    """

    recording: Recording
    series: Mapping[str, DeviceSeries]
    active: Mapping[str, Interval]
    window: Interval | None
    all_series: Mapping[str, DeviceSeries]
    jobs: tuple[Job, ...]
    observed_job: ObservedJob
    time_without_job: Mapping[str, Spans]
    earlier_findings: tuple[Finding, ...] = ()
    made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def whole(self) -> Interval:
        return Interval(self.recording.run.started, self.recording.run.ended)

    @property
    def job(self) -> Interval:
        return self.window or self.whole

    @property
    def work(self) -> Spans:
        return to_spans([job.window for job in self.jobs] or filter(None, [self.window]))

    @property
    def whole_log(self) -> "Context":
        return replace(self, series=self.all_series)

    def gpus(self) -> dict[str, DeviceSeries]:
        return pick(self.series, Scope.GPU)

    def hosts(self) -> dict[str, DeviceSeries]:
        return pick(self.series, Scope.HOST)

    def working(self) -> dict[str, DeviceSeries]:
        return {name: one for name, one in self.gpus().items() if name in self.active}

    def peers(self) -> list[dict[str, DeviceSeries]]:
        models: dict[str | None, dict[str, DeviceSeries]] = {}
        for name, series in self.working().items():
            models.setdefault(series.device.model, {})[name] = series
        return list(models.values())

    def hosts_of(self, gpu: DeviceSeries) -> list[DeviceSeries]:
        return [host for host in self.hosts().values() if host.is_beside(gpu)]

    def recorded(self, metric: str) -> bool:
        known = metric.removeprefix("gpu_")  # an attribute, stored once per GPU
        return any(one.is_recorded(metric) or getattr(one.device, known, None) for one in self.series.values())

    def findings(self, kind: str, device: str | None = None) -> tuple[Finding, ...]:
        return tuple(f for f in self.earlier_findings if f.kind == kind and (device is None or device in f.devices))

    def findings_on(self, device: str) -> tuple[Finding, ...]:
        return tuple(found for found in self.earlier_findings if not found.devices or device in found.devices)

    def spans_on(self, device: str, kinds: Collection[str] | None = None) -> Spans:
        found = (one for one in self.findings_on(device) if kinds is None or one.kind in kinds)
        return to_spans(part for one in found for part in one.intervals)

    def finding(  # noqa: PLR0913 - each argument is a field of the finding
        self,
        kind: str,
        severity: Severity,
        confidence: Confidence,
        devices: Iterable[str],
        *evidence: Evidence,
        spans: Spans | tuple[Interval, ...] = (),
        lost: float | None = None,
        cause: str | None = None,
        case: str | None = None,
        samples: int = 0,
        ruled_out: Iterable[str] = (),
        period: float | None = None,
        words: Words = MappingProxyType({}),
    ) -> Finding:
        named = tuple(devices)
        parts = spans if isinstance(spans, tuple) else to_intervals(spans)
        gpus = phrases.gpu_names(named, list(self.gpus())) if named else "a GPU"
        said = {"gpus": gpus, "length": sum(part.seconds for part in parts)}
        said |= {"whose": phrases.gpu_names(list(self.gpus()), list(self.gpus())), **words}
        return Finding(
            kind=kind,
            severity=severity,
            confidence=confidence,
            devices=named,
            intervals=parts,
            evidence=tuple(one for one in evidence if not isnan(one.observed)),
            lost_gpu_seconds=lost,
            cause=cause,
            samples=samples,
            ruled_out=(*filter(None, (_fill(text, said) for text in KINDS[kind].ruled_out)), *ruled_out),
            period_seconds=period,
            summary=KINDS[kind].say(case or cause, said),
        )


class Limits(dict[str, Threshold]):
    """The limits of a rule. `limits.shortest` is a number, `limits["shortest"]` the threshold."""

    def __hash__(self) -> int:  # type: ignore[override]  # limits never change
        return hash(tuple(self.items()))

    def __getattr__(self, name: str) -> float:
        if name in self:
            return self[name].value
        raise AttributeError(name)

    def compare(self, metric: str, statistic: str, observed: float, relation: str, name: str) -> Evidence:
        return compare_with_limit(metric, statistic, observed, relation, self[name])


def measured(metric: str, statistic: str, observed: float, unit: str = "1") -> Evidence:
    return Evidence(metric=metric, statistic=statistic, observed=observed, unit=unit)


def compare_with_limit(metric: str, statistic: str, observed: float, relation: str, limit: Threshold) -> Evidence:
    return replace(measured(metric, statistic, observed, limit.unit), threshold=limit, relation=relation)


Found = Iterator[Finding | NotJudged]
Judge = Callable[[Context, Limits], Found]


@dataclass(frozen=True, slots=True)
class Rule:
    """A function that finds related kinds, with its section of `rules.toml`.

    With `whole_log`, the function also reads samples outside jobs.
    """

    judge: Judge
    name: str
    descriptions: tuple[KindDescription, ...]
    conditions: Mapping[str, str]
    more: tuple[str, ...]
    limits: Limits
    settings: tuple[str, ...]
    requires: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]
    wants: tuple[str, ...]
    recording: str
    whole_log: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self.descriptions)

    def find(self, context: Context) -> Found:
        return self.judge(context, self.limits)


def _read_limits(said: Mapping[str, Any]) -> dict[str, Threshold]:
    known = {key: _SHARED[key] for key in said.get("shared", ())} | {key: said[key] for key in said if key != "shared"}
    return {
        key: Threshold(value=value, unit=unit, provenance=Provenance(origin), source=source)
        for key, (value, unit, origin, source) in known.items()
    }


def rule(name: str) -> Callable[[Judge], Rule]:
    said = _SAID[name]
    conditions = said["condition"] if isinstance(said["condition"], dict) else {name: said["condition"]}
    settings = _read_limits(said.get("settings", {}))
    return partial(
        Rule,
        name=name,
        descriptions=tuple(KINDS[kind] for kind in conditions),
        conditions=conditions,
        more=tuple(filter(None, re.split(r"\n\n|\n(?=- )", said.get("more", "")))),
        limits=Limits(settings | _read_limits(said.get("limits", {}))),
        settings=tuple(settings),
        requires=tuple(tuple(group) for group in said.get("requires", [])),
        after=tuple(said.get("after", [])),
        wants=tuple(each for name in said.get("wants", []) for each in _METRICS.get(name[1:], [name])),
        recording=said.get("recording", ""),
        whole_log=said.get("whole_log", False),
    )


def kinds_by_gpu_time_class(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in (kind for rule in rules for kind in rule.descriptions if kind.gpu_time_class):
        kinds[kind.gpu_time_class] = (*kinds.get(kind.gpu_time_class, ()), kind.name)
    return kinds

"""What a rule is, and what it may look at."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from gpureport.analysis.kinds import KINDS, KindDescription
from gpureport.analysis.results import Job, ObservedJob
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.findings import Evidence, Finding, Interval, NotJudged, Provenance, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Recording

T = TypeVar("T")


class FindingIndex:
    """Findings by kind and by device, each in their order."""

    def __init__(self, findings: Iterable[Finding], devices: Iterable[str]) -> None:
        """Sort findings in.

        Args:
            findings: the findings.
            devices: ids of all devices, which a finding without devices concerns.
        """
        self._by_kind: dict[str, list[Finding]] = {}
        self._by_device: dict[str, list[Finding]] = {device: [] for device in devices}
        everybody = tuple(self._by_device)
        for found in findings:
            self._by_kind.setdefault(found.kind, []).append(found)
            for device in dict.fromkeys(found.devices or everybody):
                self._by_device.setdefault(device, []).append(found)

    def list_of_kind(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of a kind."""
        return tuple(self._by_kind.get(kind, ()))

    def list_on_device(self, device: str) -> tuple[Finding, ...]:
        """Return the findings that concern a device, those without devices included."""
        return tuple(self._by_device.get(device, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a rule may look at.

    Attributes:
        recording: the recording.
        series: the sampled series of each device, keyed by device id; of GPUs without the time in which no
            job held them.
        active: from first to last sustained activity of each GPU that worked, keyed by device id.
        window: from the first to the last sustained activity of any GPU; None when none ran.
        all_series: the series of each device with all of its samples.
        jobs: the jobs of the log, in the order of time.
        observed_job: when the job's own processes were seen to begin and to end.
        time_without_job: when no job held a GPU, by device id; GPUs without such time are left out.
        earlier_findings: findings of the kinds named in the rule's `after`.
    """

    recording: Recording
    series: Mapping[str, DeviceSeries]
    active: Mapping[str, Interval]
    window: Interval | None
    all_series: Mapping[str, DeviceSeries] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    observed_job: ObservedJob = field(default_factory=ObservedJob)
    time_without_job: Mapping[str, Spans] = field(default_factory=dict)
    earlier_findings: tuple[Finding, ...] = ()
    _made: list[tuple[object, Any]] = field(default_factory=list, repr=False, compare=False)
    # no argument, so that `replace` makes it anew
    _index: list[FindingIndex] = field(default_factory=list, init=False, repr=False, compare=False)
    _recorded: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cached(self, key: object, make: Callable[[], T]) -> T:
        """Return what was made for an equal key before, by whichever rule; what it depends on belongs into the key."""
        for known, made in self._made:
            if known == key:
                found: T = made
                return found
        self._made.append((key, make()))
        return self.cached(key, make)

    @property
    def whole(self) -> Interval:
        """From the first to the last sample of the run."""
        return Interval(self.recording.run.started, self.recording.run.ended)

    @property
    def work(self) -> Spans:
        """From the first to the last sustained activity of any GPU in each job."""
        windows = [job.window for job in self.jobs] or ([self.window] if self.window else [])
        return intervals.to_spans(windows)

    @property
    def whole_log(self) -> "Context":
        """The same with all samples of every device, those without a job included."""
        return replace(self, series=self.all_series or self.series)

    def full_series(self, device: str) -> DeviceSeries:
        """Return the series of a device with all of its samples."""
        return self.all_series.get(device, self.series[device])

    def gpus(self) -> dict[str, DeviceSeries]:
        """Return the series of each GPU that has samples, keyed by device id."""
        return {name: one for name, one in self.series.items() if one.device.scope is Scope.GPU and len(one)}

    def hosts(self) -> dict[str, DeviceSeries]:
        """Return the series of each host that has samples, keyed by device id."""
        return {name: one for name, one in self.series.items() if one.device.scope is Scope.HOST and len(one)}

    def recorded(self, metric: str) -> bool:
        """Whether any device recorded a value of the metric."""
        if metric not in self._recorded:
            self._recorded[metric] = any(one.is_recorded(metric) for one in self.series.values())
        return self._recorded[metric]

    def findings(self, kind: str, device: str | None = None) -> tuple[Finding, ...]:
        """Return earlier findings of a kind, of one device when given."""
        if device is None:
            return self._find_index().list_of_kind(kind)
        return tuple(f for f in self.findings_on(device) if f.kind == kind and device in f.devices)

    def findings_on(self, device: str) -> tuple[Finding, ...]:
        """Return earlier findings that concern a device, those without devices included."""
        return self._find_index().list_on_device(device)

    def _find_index(self) -> FindingIndex:
        if not self._index:
            self._index.append(FindingIndex(self.earlier_findings, self.series))
        return self._index[0]


class Limits(Mapping[str, Threshold]):
    """The limits of one rule: `limits.shortest` is a number in its base unit, `limits["shortest"]` the threshold."""

    def __init__(self, thresholds: Mapping[str, Threshold]) -> None:
        """Take the limits of a rule.

        Args:
            thresholds: its limits by name.
        """
        self._thresholds = thresholds

    def __getattr__(self, name: str) -> float:
        """Return a limit as a plain number."""
        if name in self._thresholds:
            return self._thresholds[name].value
        raise AttributeError(name)

    def __getitem__(self, name: str) -> Threshold:
        """Return a limit with its unit and its source."""
        return self._thresholds[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the limits, in the order in which they are declared."""
        return iter(self._thresholds)

    def __len__(self) -> int:
        """Return how many limits there are."""
        return len(self._thresholds)

    def compare(self, metric: str, statistic: str, observed: float, relation: str, name: str) -> Evidence:
        """Return a value beside the limit that made it count, in the unit of the limit."""
        return compare_with_limit(metric, statistic, observed, relation, self[name])


def compare_with_limit(metric: str, statistic: str, observed: float, relation: str, limit: Threshold) -> Evidence:
    """Return a value, in the unit of the limit, beside the limit that made it count."""
    return Evidence(
        metric=metric, statistic=statistic, observed=observed, unit=limit.unit, threshold=limit, relation=relation
    )


Judge = Callable[[Context, Limits], Iterable[Finding | NotJudged]]
"""What finds the kinds of a rule, or says why it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way to lose GPU time, or a family of ways that share a computation, as `rules.toml` declares it.

    Attributes:
        name: what `--select` and `[rules.NAME]` of the settings call it; that of its kind, unless it makes several.
        judge: the function that finds them.
        descriptions: the kinds of findings it makes.
        condition: paragraphs and list items that state when, the first in short.
        limits: its limits.
        settings: names of the limits that a person can set.
        requires: metrics of which at least one of every group must be recorded.
        after: kinds whose findings it needs.
        wants: further metrics it looks at, which some of its answers or their certainty rest on.
        recording: what to record besides metrics, in words; empty where metrics are all it needs.
        whole_log: whether it looks at all samples, those outside jobs included.
    """

    name: str
    judge: Judge
    descriptions: tuple[KindDescription, ...]
    condition: tuple[str, ...]
    limits: Limits
    settings: tuple[str, ...]
    requires: tuple[tuple[str, ...], ...] = ()
    after: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    recording: str = ""
    whole_log: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds it makes."""
        return tuple(kind.name for kind in self.descriptions)

    def find(self, context: Context) -> Iterable[Finding | NotJudged]:
        """Yield findings, and what could not be judged."""
        return self.judge(context, self.limits)


_SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
_SHARED, _METRICS = _SAID.pop("@limits"), _SAID.pop("@metrics")


def _add_shared(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits with those that several rules share, which stand first."""
    return {key: _SHARED[key] for key in said.get("shared", ())} | {key: said[key] for key in said if key != "shared"}


def rule(name: str) -> Callable[[Judge], Rule]:
    """Make a rule of a function that finds its kinds; `rules.toml` says the rest."""
    said = _SAID[name]
    settings, fixed = _add_shared(said.get("settings", {})), _add_shared(said.get("limits", {}))
    limits = {
        key: Threshold(value=value, unit=unit, provenance=Provenance(origin), source=source)
        for key, (value, unit, origin, source) in (settings | fixed).items()
    }

    def make(judge: Judge) -> Rule:
        return Rule(
            name=name,
            judge=judge,
            descriptions=tuple(KINDS[kind] for kind in said.get("kinds", [name])),
            condition=(said["condition"], *filter(None, re.split(r"\n\n|\n(?=- )", said.get("more", "")))),
            limits=Limits(limits),
            settings=tuple(settings),
            requires=tuple(tuple(group) for group in said.get("requires", [])),
            after=tuple(said.get("after", [])),
            wants=tuple(each for name in said.get("wants", []) for each in _METRICS.get(name[1:], [name])),
            recording=said.get("recording", ""),
            whole_log=said.get("whole_log", False),
        )

    return make


def kinds_by_gpu_time_class(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the kinds whose time counts to each class of GPU time, in the order of the rules."""
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in (kind for rule in rules for kind in rule.descriptions if kind.gpu_time_class):
        kinds[kind.gpu_time_class] = (*kinds.get(kind.gpu_time_class, ()), kind.name)
    return kinds

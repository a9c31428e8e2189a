"""A metric in words: what it means, what one value covers, and what records it."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.rulebook import Rule
from gpureport.metrics import Metric, Scope
from gpureport.recording_advice import is_recorded
from gpureport.report.model.shapes import Explanation, Fact, Section

_UNITS = {
    "1": "a ratio; 1 is 100%",
    "By": "bytes",
    "By/s": "bytes a second",
    "W": "watts",
    "Hz": "hertz",
    "Cel": "degrees Celsius",
    "s": "seconds",
    "J": "joules",
    "": "none",
}
_SCOPES = {Scope.GPU: "one GPU", Scope.HOST: "the machine the GPUs sit in"}
_SOURCES = {Scope.GPU: "nvidia-smi field", Scope.HOST: "host command"}
_DCGM = "DCGM_FI_"


def explain_metrics(name: str, metrics: Sequence[Metric], rules: Sequence[Rule]) -> Explanation:
    """Return what metrics mean.

    Args:
        name: what was asked for.
        metrics: the metrics it stands for, at least one.
        rules: the rules, for what the metrics are used by.
    """
    if len(metrics) == 1:
        return Explanation(title=metrics[0].name, sections=(Section(title="", facts=tuple(_facts(metrics[0], rules))),))
    facts = tuple(Fact(name=metric.name, text=metric.brief) for metric in metrics)
    return Explanation(title=f"{name} stands for {len(metrics)} metrics", sections=(Section(title="", facts=facts),))


def _facts(metric: Metric, rules: Sequence[Rule]) -> Iterator[Fact]:
    yield Fact(name="Meaning", text=metric.brief)
    yield Fact(name="Unit", text=_UNITS.get(metric.unit, metric.unit))
    yield Fact(name="Behaves as", text=metric.kind.value)
    yield Fact(name="Describes", text=_SCOPES[metric.scope])
    yield Fact(name="A value covers", text=metric.covers)
    source = "DCGM field" if metric.recorded_by.startswith(_DCGM) else _SOURCES[metric.scope]
    command = "gpureport record: " if is_recorded(metric) else ""
    yield Fact(name="Recorded by", text=f"{command}{metric.recorded_by} ({source})")
    yield Fact(name="OpenTelemetry", text=metric.otel or "has no name for it")
    needed = [kind for rule in rules for kind in rule.kinds if any(metric.name in group for group in rule.requires)]
    wanted = [kind for rule in rules for kind in rule.kinds if metric.name in rule.wants and kind not in needed]
    if needed:
        yield Fact(name="Needed by", text=", ".join(needed))
    if wanted:
        yield Fact(name="Used by", text=", ".join(wanted))

"""What `gpureport explain` says: the kinds, classes of GPU time, metrics, figures and recording it knows by name."""

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from gpureport.analysis.account.selection import kinds_by_name
from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.analysis.rulebook import Rule
from gpureport.errors import SettingsError
from gpureport.importers.nvidia_smi.fields import ALIASES, canonicalize, find_query_field, find_target
from gpureport.importers.nvidia_smi.fields import ATTRIBUTE_FIELDS as ATTRIBUTES
from gpureport.metrics import METRICS, Metric
from gpureport.report.explain import (
    explained_classes,
    explained_figures,
    explained_kinds,
    explained_metrics,
    explained_recording,
)
from gpureport.report.model.shapes import Explanation, Fact, Section
from gpureport.report.wording import terms

RECORDING = "recording"
_SUGGESTED = 3
"""Names that are suggested at most."""
_SLIP = 0.85
"""Likeness to a figure from which a word is taken for a slip: other names are more often meant."""
_SHORTEST = 3
"""Letters from which on a word is looked for in others."""


def explain(name: str | None, rules: Sequence[Rule], *, brief: bool = False) -> Explanation:
    """Return what a name stands for, or everything that can be explained without one.

    Args:
        name: a kind or its title, a family of kinds, a class of GPU time, a metric, what records it, a figure, or
            `recording`.
        rules: the rules, with the limits they judge by.
        brief: of a kind the first page only.

    Raises:
        SettingsError: when nothing has the name, with the nearest one that does.
    """
    if name is None:
        return _index(rules)
    if name == RECORDING:
        return explained_recording.explain_recording()
    if explained_classes.find_class(name) is None:
        # a class of GPU time may be called as the finding that fills it
        name = _list_titles(rules).get(name.lower(), name)
    if brief and (kinds := _find_kinds(name, rules)):
        return explained_kinds.explain_kinds_briefly(name, *kinds)
    found = next(filter(None, (look(name, rules) for look in _LOOKUPS)), None)
    if found is None:
        raise SettingsError("explain", f"nothing is called {name!r}", _hint(name, rules), code="nothing_explained")
    return found


def _kinds(name: str, rules: Sequence[Rule]) -> Explanation | None:
    found = _find_kinds(name, rules)
    return explained_kinds.explain_kinds(name, *found) if found else None


def _find_kinds(name: str, rules: Sequence[Rule]) -> tuple[Sequence[str], Rule] | None:
    """Return the kinds that a name stands for, and the rule that finds them."""
    kinds = kinds_by_name(rules).get(name)
    return (kinds, next(rule for rule in rules if kinds[0] in rule.kinds)) if kinds else None


def _class(name: str, _rules: Sequence[Rule]) -> Explanation | None:
    key = explained_classes.find_class(name)
    return explained_classes.explain_class(key) if key else None


def _metrics(name: str, rules: Sequence[Rule]) -> Explanation | None:
    metrics = tuple(_find_metrics(name))
    return explained_metrics.explain_metrics(name, metrics, rules) if metrics else None


def _figure(name: str, _rules: Sequence[Rule]) -> Explanation | None:
    return explained_figures.explain_figure(name)


def _attribute(name: str, _rules: Sequence[Rule]) -> Explanation | None:
    if canonicalize(name) not in ATTRIBUTES:
        return None
    text = "It describes a GPU and is kept with the run, not as a series of values."
    return Explanation(title=name, sections=(Section(title="", paragraphs=(text,)),))


_LOOKUPS: tuple[Callable[[str, Sequence[Rule]], Explanation | None], ...] = (
    _kinds,
    _class,
    _metrics,
    _figure,
    _attribute,
)


def _find_metrics(name: str) -> Iterator[Metric]:
    """Yield the metrics with a name, or that a field, host command or OpenTelemetry name stands for."""
    field = canonicalize(name)
    for metric in METRICS:
        if (
            name in {metric.name, metric.otel}
            or metric.recorded_by in {name, field}
            or find_target(field) == metric.name
        ):
            yield metric


def _hint(name: str, rules: Sequence[Rule]) -> str:
    """Return the nearest names: those with the word or a synonym, then those spelled alike."""
    asked = name.lower().replace("isation", "ization")
    known = _list_titles(rules) | _list_names(rules)
    if asked in known:
        return f"did you mean {known[asked]!r}?"
    written = find_query_field(asked)
    parts = sorted((word for word in known if asked in word), key=len) if len(asked) >= _SHORTEST else []
    close = get_close_matches(asked, sorted(known), n=_SUGGESTED)
    figures = get_close_matches(asked, explained_figures.FIGURES, n=1, cutoff=_SLIP)
    found = [*([written.partition(" ")[0]] if written else []), *figures, *(known[word] for word in (*parts, *close))]
    found = found or get_close_matches(asked, GPU_TIME_CLASSES, n=_SUGGESTED)
    names = [f"{each!r}" for each in dict.fromkeys(found)][:_SUGGESTED]
    return f"did you mean {_join_with_or(names)}?" if names else "gpureport explain lists what there is"


def _list_titles(rules: Sequence[Rule]) -> dict[str, str]:
    return {terms.kind_title(kind).lower(): kind for rule in rules for kind in rule.kinds}


def _list_names(rules: Sequence[Rule]) -> dict[str, str]:
    names = [RECORDING, *kinds_by_name(rules), *(metric.name for metric in METRICS)]
    names += [metric.recorded_by for metric in METRICS] + list(ATTRIBUTES)
    others = {metric.otel: metric.name for metric in METRICS if metric.otel}
    return others | dict(ALIASES) | {name: name for name in names}


def _join_with_or(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _index(rules: Sequence[Rule]) -> Explanation:
    kinds = [Fact(name=kind, text=terms.kind_title(kind)) for rule in rules for kind in rule.kinds]
    groups = [Fact(name=rule.name, text=", ".join(rule.kinds)) for rule in rules if rule.name not in rule.kinds]
    classes = [Fact(name=key, text=title) for key, title in terms.CLASSES.items()]
    width = max(len(metric.name) for metric in METRICS)
    metrics = [f"  {metric.name:{width}}  {metric.recorded_by}" for metric in METRICS]
    return Explanation(
        title="What gpureport explain knows",
        sections=(
            Section(title="Recording", facts=(Fact(name=RECORDING, text="what to log so that every kind is judged"),)),
            Section(title="Kinds of findings", facts=tuple(kinds)),
            Section(title="Families of kinds", facts=tuple(groups)),
            Section(title="Classes of GPU time", facts=tuple(classes)),
            Section(title="Figures of a run", paragraphs=(", ".join(explained_figures.FIGURES),)),
            Section(title="Metrics, and what records each", code=tuple(metrics)),
        ),
    )

"""What `gpureport explain` says of kinds of findings, classes of GPU time, metrics, figures, and what to record.

A new kind, metric or class is explained from its own attributes; a new figure by an entry of `explanation.toml`.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gpureport import recording_advice
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.analysis.advice.choose import STEPS, USUAL_CHECK, Step
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES
from gpureport.analysis.rulebook import Rule, kinds_by_gpu_time_class
from gpureport.analysis.rules import RULES
from gpureport.errors import SettingsError
from gpureport.findings import Threshold
from gpureport.importers.nvidia_smi.fields import ALIASES, canonicalize, find_query_field, find_target
from gpureport.importers.nvidia_smi.fields import ATTRIBUTE_FIELDS as ATTRIBUTES
from gpureport.metrics import BY_NAME, METRICS, Metric, Scope
from gpureport.recording_advice import is_recorded
from gpureport.report.model.shapes import Explanation, Fact, Section
from gpureport.report.wording import display, terms
from gpureport.report.wording.terminal_lines import Line, Page, render_lines

RECORDING = "recording"
_SUGGESTED = 3
"""Names that are suggested at most."""
_SLIP = 0.85
"""Likeness to a figure from which a word is taken for a slip: other names are more often meant."""
_SHORTEST = 3
"""Letters from which on a word is looked for in others."""
_FIRST = 3
"""Steps of a cause on the first page."""

_SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_name("explanation.toml").read_text(encoding="utf-8"))
_FIGURES: dict[str, tuple[str, str, str]] = _SAID["figures"]
_COMMANDS = {
    "record": recording_advice.RECORD,
    "gpus": recording_advice.GPU_COMMAND,
    "pcie": recording_advice.DMON_COMMAND,
    "host": recording_advice.HOST_COMMAND,
    "process": recording_advice.PROCESS_COMMAND,
    "counters": ",".join(recording_advice.COUNTER_FIELDS),
    "gpm": recording_advice.GPM_COMMAND,
    "dcgm": recording_advice.DCGM_COMMAND,
}
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
_LIMIT_UNITS = {"Cel": "°C", "By": "bytes", "By/s": "bytes/s"}
_SCOPES = {
    Scope.GPU: ("one GPU", "nvidia-smi field"),
    Scope.HOST: ("the machine the GPUs sit in", "host command"),
}
_COUNTED = {"no_samples": "as not known", "no_job": "in no share: shares are of the time of jobs"}
"""How classes count that are neither lost nor work."""


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
        return _explain_recording()
    if _find_class(name) is None:
        # a class of GPU time may be called as the finding that fills it
        name = _list_titles(rules).get(name.lower(), name)
    found = (
        _explain_kinds(name, rules, brief=brief)
        or _explain_class(name)
        or _explain_metrics(name, rules)
        or _explain_figure(name)
    )
    if found is None:
        raise SettingsError("explain", f"nothing is called {name!r}", _hint(name, rules), code="nothing_explained")
    return found


def _section(title: str, *paragraphs: str, facts: Iterable[tuple[str, str]] = ()) -> Section:
    """Return a section; a fact without text is left out."""
    named = tuple(Fact(name=name, text=text) for name, text in facts if text)
    return Section(title=title, paragraphs=paragraphs, facts=named)


def _explain_recording() -> Explanation:
    """Return what to run, what it writes, and what it does not record."""
    said = _SAID["recording"]
    sections = tuple(
        Section(
            title=part["title"],
            paragraphs=tuple(part.get("paragraphs", ())),
            facts=tuple(Fact(name=name, text=text) for name, text in part.get("facts", {}).items()),
            code=tuple(line.format_map(_COMMANDS) for line in part.get("code", ())),
        )
        for part in said["sections"]
    )
    return Explanation(title=said["title"], sections=sections)


def _explain_kinds(name: str, rules: Sequence[Rule], *, brief: bool) -> Explanation | None:
    """Return what a kind or a family of kinds means; briefly what fits on a screen of it."""
    kinds = kinds_by_name(rules).get(name)
    if not kinds:
        return None
    rule = next(rule for rule in rules if kinds[0] in rule.kinds)
    conditions = [f"{kind}: {rule.conditions[kind]}" if len(kinds) > 1 else rule.conditions[kind] for kind in kinds]
    means = _section("Means", *(kind.meaning for kind in rule.descriptions if kind.name in kinds))
    needs = _section("Needs", facts=_needs(rule))
    if brief:
        do = _section("Do", facts=_steps_by_cause(kinds, _FIRST))
        words = (
            f"gpureport explain {name} --detail full: the condition in full, "
            f"{display.plural(len(rule.limits), 'limit')}, and every step with what it needs and risks."
        )
        sections = [means, _section("Found when", *conditions), needs, do, _section("", words)]
    else:
        more = map(display.clean_sentence, rule.more)
        found = _section("Found when", *conditions, *more, *_list_related_kinds(kinds, rule))
        chosen = _section("Steps, the most promising first", _SAID["steps"], facts=_steps_by_cause(kinds))
        steps = dict.fromkeys(step for kind in kinds for steps in KINDS[kind].steps.values() for step in steps)
        each = [_section(STEPS[step].title, facts=_step_facts(STEPS[step])) for step in steps]
        sections = [means, found, *_limits(rule), needs, chosen, *each]
    titles = "; ".join(map(terms.kind_title, kinds))
    return Explanation(title=f"{name}: {titles}", sections=tuple(sections))


def _list_related_kinds(kinds: Sequence[str], rule: Rule) -> Iterator[str]:
    others = [kind for kind in rule.kinds if kind not in kinds]
    if others:
        yield f"Assessed together with {display.join_words(others)}."
    if rule.after:
        yield f"Assessed after {display.join_words(rule.after)}, whose findings it takes into account."


def _limits(rule: Rule) -> Iterator[Section]:
    if rule.limits:
        which = ["any"] if len(rule.settings) == len(rule.limits) else list(rule.settings)
        where = f"Set {display.join_words(which)} in gpureport.toml under [rules.{rule.name}], in base units."
        facts = (
            (name, f"{_amount(limit)}; {limit.provenance.value}: {display.clean_sentence(limit.source)}")
            for name, limit in rule.limits.items()
        )
        yield _section("Thresholds", where, facts=facts)


def _amount(limit: Threshold) -> str:
    """Return a limit as it is set, all its digits included, and a ratio in per cent too."""
    if limit.unit == "1":
        return f"{limit.value:g} ({100 * limit.value:g}%)"
    return f"{limit.value:.15g}{display.GAP}{_LIMIT_UNITS.get(limit.unit, limit.unit)}"


def _needs(rule: Rule) -> Iterator[tuple[str, str]]:
    needed = {name for group in rule.requires for name in group}
    for group in rule.requires:
        yield "Required", " or ".join(f"{BY_NAME[name].recorded_by} ({name})" for name in group)
    wanted: dict[str, list[str]] = {}
    for name in rule.wants:
        if name not in needed:
            wanted.setdefault(BY_NAME[name].recorded_by, []).append(name)
    yield from (("Also uses", f"{field} ({', '.join(names)})") for field, names in wanted.items())
    yield "Required", rule.recording or ("" if rule.requires or rule.wants else "nothing but time stamps")
    if not rule.recording and all(is_recorded(BY_NAME[name]) for name in needed):
        yield "Recorded by", "gpureport record"


def list_steps_by_cause(kind: str, most: int | None = None) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Yield the first steps of a kind, each with the causes that have them."""
    causes: dict[tuple[str, ...], list[str]] = {}
    for cause, steps in KINDS[kind].steps.items():
        causes.setdefault(steps[:most], []).append(cause or "other")
    yield from ((causes, steps) for steps, causes in causes.items())


def _steps_by_cause(kinds: Sequence[str], most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the steps of some kinds, in order, at most so many for each cause."""
    for kind in kinds:
        for causes, steps in list_steps_by_cause(kind, most):
            words = [kind] if len(kinds) > 1 else []
            words += [", ".join(causes)] if len(KINDS[kind].steps) > 1 else []
            numbered = "; ".join(f"{place}. {STEPS[name].title}" for place, name in enumerate(steps, 1))
            yield ", ".join(words), numbered or "nothing"


def _step_facts(step: Step) -> Iterator[tuple[str, str]]:
    needs = display.join_words(list(step.needs))
    yield from (("Do", step.do), ("When", "" if step.when.lower() == f"{needs}.".lower() else step.when))
    yield from (("Only if", needs), ("For", name_frameworks(step) if step.frameworks else ""))
    yield from (("Risk", step.risk), ("Check", "" if step.check == USUAL_CHECK else step.check))
    yield "Source", step.source


def name_frameworks(step: Step) -> str:
    """Return which frameworks a step is for, in words."""
    named = display.join_words([str(each) for each in step.frameworks if each is not None])
    if not named:
        return "a run that names no framework"
    return f"{named}, or a run that names no framework" if None in step.frameworks else f"a run that names {named}"


def _find_class(name: str) -> str | None:
    """Return the class of GPU time of a name, its key or what reports call it; None for others."""
    word = _word(name)
    return next((key for key in GPU_TIME_CLASSES if word in {_word(key), _word(terms.CLASSES[key])}), None)


def _word(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _explain_class(name: str) -> Explanation | None:
    """Return what a class holds, whether it counts as lost, and which kinds of findings tell more."""
    key = _find_class(name)
    if key is None:
        return None
    title = terms.CLASSES[key]
    counted = "as lost" if key in LOST_CLASSES else _COUNTED.get(key, "not as lost")
    findings = ", ".join(kinds_by_gpu_time_class(RULES).get(key, ()))
    facts = _section("Class of GPU time", facts=[("Counted", counted), ("Findings", findings)])
    return Explanation(title=f"{key}: {title}", sections=(_section("", dict(terms.DEFINITIONS)[title]), facts))


def _explain_metrics(name: str, rules: Sequence[Rule]) -> Explanation | None:
    """Return what the metrics mean that have a name, or that a field, host command or OpenTelemetry name stands for."""
    field = canonicalize(name)
    metrics = [
        metric
        for metric in METRICS
        if name in {metric.name, metric.otel}
        or metric.recorded_by in {name, field}
        or find_target(field) == metric.name
    ]
    if len(metrics) == 1:
        return Explanation(title=metrics[0].name, sections=(_section("", facts=_metric_facts(metrics[0], rules)),))
    if metrics:
        briefs = _section("", facts=[(metric.name, metric.brief) for metric in metrics])
        return Explanation(title=f"{name} stands for {len(metrics)} metrics", sections=(briefs,))
    if field in ATTRIBUTES and name not in _FIGURES:
        text = "It describes a GPU and is kept with the run, not as a series of values."
        return Explanation(title=name, sections=(_section("", text),))
    return None


def _metric_facts(metric: Metric, rules: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    describes, source = _SCOPES[metric.scope]
    source = "DCGM field" if metric.recorded_by.startswith("DCGM_FI_") else source
    needed = [kind for rule in rules for kind in rule.kinds if any(metric.name in group for group in rule.requires)]
    wanted = [kind for rule in rules for kind in rule.kinds if metric.name in rule.wants and kind not in needed]
    yield from (("Meaning", metric.brief), ("Unit", _UNITS.get(metric.unit, metric.unit)))
    yield from (("Behaves as", metric.kind.value), ("Describes", describes), ("A value covers", metric.covers))
    yield "Recorded by", f"{'gpureport record: ' if is_recorded(metric) else ''}{metric.recorded_by} ({source})"
    yield "OpenTelemetry", metric.otel or "has no name for it"
    yield from (("Needed by", ", ".join(needed)), ("Used by", ", ".join(wanted)))


def _explain_figure(name: str) -> Explanation | None:
    """Return what a figure of a run means, and how a rule limits it, if it is one."""
    if name not in _FIGURES:
        return None
    meaning, unit, rule = _FIGURES[name]
    facts = (("Meaning", meaning), ("Unit", unit), ("As a rule", f"--fail-on '{rule}'"))
    return Explanation(title=name, sections=(_section("", facts=facts),))


def _hint(name: str, rules: Sequence[Rule]) -> str:
    """Return the nearest names: those with the word or a synonym, then those spelled alike."""
    asked = name.lower().replace("isation", "ization")
    known = _list_titles(rules) | _list_names(rules)
    if asked in known:
        return f"did you mean {known[asked]!r}?"
    written = find_query_field(asked)
    parts = sorted((word for word in known if asked in word), key=len) if len(asked) >= _SHORTEST else []
    close = get_close_matches(asked, sorted(known), n=_SUGGESTED)
    figures = get_close_matches(asked, _FIGURES, n=1, cutoff=_SLIP)
    found = [*([written.partition(" ")[0]] if written else []), *figures, *(known[word] for word in (*parts, *close))]
    found = found or get_close_matches(asked, GPU_TIME_CLASSES, n=_SUGGESTED)
    names = [f"{each!r}" for each in dict.fromkeys(found)][:_SUGGESTED]
    words = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"did you mean {words}?" if names else "gpureport explain lists what there is"


def _list_titles(rules: Sequence[Rule]) -> dict[str, str]:
    return {terms.kind_title(kind).lower(): kind for rule in rules for kind in rule.kinds}


def _list_names(rules: Sequence[Rule]) -> dict[str, str]:
    names = [RECORDING, *kinds_by_name(rules), *(metric.name for metric in METRICS)]
    names += [metric.recorded_by for metric in METRICS] + list(ATTRIBUTES)
    others = {metric.otel: metric.name for metric in METRICS if metric.otel}
    return others | dict(ALIASES) | {name: name for name in names}


def _index(rules: Sequence[Rule]) -> Explanation:
    kinds = [(kind, terms.kind_title(kind)) for rule in rules for kind in rule.kinds]
    groups = [(rule.name, ", ".join(rule.kinds)) for rule in rules if rule.name not in rule.kinds]
    width = max(len(metric.name) for metric in METRICS)
    metrics = tuple(f"  {metric.name:{width}}  {metric.recorded_by}" for metric in METRICS)
    return Explanation(
        title="What gpureport explain knows",
        sections=(
            _section("Recording", facts=[(RECORDING, "what to log so that every kind is judged")]),
            _section("Kinds of findings", facts=kinds),
            _section("Families of kinds", facts=groups),
            _section("Classes of GPU time", facts=terms.CLASSES.items()),
            _section("Figures of a run", ", ".join(_FIGURES)),
            Section(title="Metrics, and what records each", code=metrics),
        ),
    )


def render(content: Explanation, width: int = 80, *, colour: bool = False) -> str:
    """Return an explanation as text for a terminal or a pipe; lines to be copied are never wrapped."""
    return render_lines(_lines(content, Page(width=width, ascii=False)), colour=colour)


def _lines(content: Explanation, page: Page) -> Iterator[Line]:
    yield from page.wrapped(content.title, style="heading")
    for section in content.sections:
        yield Line()
        if section.title:
            yield from page.wrapped(section.title, style="heading")
        yield from map(Line, section.code)
        for paragraph in section.paragraphs:
            yield from page.wrapped(paragraph, 2)
        column = max((len(fact.name) for fact in section.facts), default=0) + 1
        before = ""
        for fact in section.facts:
            name = "" if fact.name == before else fact.name
            yield from page.wrapped(fact.text, 2, name.ljust(column) if fact.name else "")
            before = fact.name

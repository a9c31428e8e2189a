"""`gpureport explain`: kinds of findings, classes of GPU time, metrics, figures, and what to record.

Kinds, metrics and classes are explained by their attributes, figures by `explanation.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gpureport import recording_advice
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.analysis.advice.choose import STEPS, USUAL_CHECK, Step
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES
from gpureport.analysis.rulebook import KINDS, Rule, kinds_by_gpu_time_class
from gpureport.analysis.rules import RULES
from gpureport.errors import SettingsError
from gpureport.importers.nvidia_smi import ALIASES, ATTRIBUTE_FIELDS, canonicalize, find_query_field, find_target
from gpureport.metrics import BY_NAME, METRICS, Metric
from gpureport.names import group_pairs
from gpureport.report.formats.terminal import write_blocks
from gpureport.report.model.blocks import Block
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display, terms
from gpureport.report.wording.terminal_lines import PIPE, Page

RECORDING = "recording"
_SUGGESTED = 3  # Maximum number of suggested names.
_SLIP = 0.85  # Users seldom mean figures.
_SHORTEST = 3  # Minimum length of a word to search for.
_FIRST = 3  # Number of steps per cause in the short form.
_SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_name("explanation.toml").read_text(encoding="utf-8"))
_FIGURES: dict[str, tuple[str, str, str]] = _SAID["figures"]
_COMMANDS = {name.lower(): text for name, text in vars(recording_advice).items() if isinstance(text, str)} | {
    "counters": ",".join(recording_advice.COUNTER_FIELDS)
}


def explain(name: str | None, rules: Sequence[Rule], *, brief: bool = False) -> list[Block]:
    """Return an explanation of `name`, or a list of all names if it is None.

    Raises SettingsError with suggestions if `name` is unknown.
    """
    if name is None:
        return list(_index(rules))
    if name == RECORDING:
        blocks = _section(_SAID["recording"]["title"])
        for part in _SAID["recording"]["sections"]:
            blocks += _section(part["title"], code=[line.format_map(_COMMANDS) for line in part.get("code", ())])
            blocks += _section("", *part.get("paragraphs", ()), facts=part.get("facts", {}).items())
        return blocks
    if _find_class(name) is None:
        # a class of GPU time and a kind may have the same title
        name = _list_titles(rules).get(name.lower(), name)
    kinds = kinds_by_name(rules).get(name)
    found = list(_explain_kinds(name, kinds, rules, brief=brief)) if kinds else _explain_class(name)
    found = found or _explain_metrics(name, rules)
    if name in _FIGURES and not found:
        meaning, unit, rule = _FIGURES[name]
        found = _section(name, facts=(("Meaning", meaning), ("Unit", unit), ("As a rule", f"--fail-on '{rule}'")))
    if not found:
        raise SettingsError("explain", f"unknown name {name!r}", _hint(name, rules), code="nothing_explained")
    return found


def render(blocks: Sequence[Block], page: Page = PIPE) -> str:
    return write_blocks(blocks, page)


def _section(title: str, *texts: str, facts: Iterable[tuple[str, str]] = (), code: Sequence[str] = ()) -> list[Block]:
    named = [Fact(name=name, text=text) for name, text in facts if text]
    # a title without content is a heading for later sections
    return [Block(title=title, level=4 if texts or named or code else 3, texts=texts, facts=named, code=code)]


def _explain_kinds(name: str, kinds: Sequence[str], rules: Sequence[Rule], *, brief: bool) -> Iterator[Block]:
    rule = next(rule for rule in rules if kinds[0] in rule.kinds)
    conditions = [f"{kind}: {rule.conditions[kind]}" if len(kinds) > 1 else rule.conditions[kind] for kind in kinds]
    yield from _section(f"{name}: {'; '.join(map(terms.kind_title, kinds))}")
    yield from _section("Means", *(kind.meaning for kind in rule.descriptions if kind.name in kinds))
    others = [kind for kind in rule.kinds if kind not in kinds]
    beside = f"Assessed together with {display.join_words(others)}." if others else ""
    after = f"Assessed after {display.join_words(rule.after)}, because it depends on their findings."
    more = (*map(display.clean_sentence, rule.more), beside, after if rule.after else "")
    yield from _section("Found when", *conditions, *(() if brief else more))
    if rule.limits and not brief:
        which = ["any of them"] if len(rule.settings) == len(rule.limits) else list(rule.settings)
        where = f"Set {display.join_words(which)} in gpureport.toml under [rules.{rule.name}], in base units."
        limits = []
        for key, limit in rule.limits.items():
            unit = {"Cel": "°C", "By": "bytes", "By/s": "bytes/s"}.get(limit.unit, limit.unit)
            amount = f" ({100 * limit.value:g}%)" if limit.unit == "1" else f"{display.GAP}{unit}"
            source = f"{limit.provenance.value}: {display.clean_sentence(limit.source)}"
            limits.append((key, f"{limit.value:.15g}{amount}; {source}"))
        yield from _section("Thresholds", where, facts=limits)
    yield from _section("Needs", facts=_needs(rule))
    if brief:
        yield from _section("Do", facts=_steps_by_cause(kinds, _FIRST))
        rest = f"the full condition, {display.plural(len(rule.limits), 'limit')}, and the needs and risks of every step"
        yield Block(texts=[f"gpureport explain {name} --detail full shows {rest}."])
        return
    yield from _section("Steps, most promising first", _SAID["steps"], facts=_steps_by_cause(kinds))
    for key in dict.fromkeys(each for kind in kinds for steps in KINDS[kind].steps.values() for each in steps):
        step = STEPS[key]
        needs = display.join_words(list(step.needs))
        facts = [("Do", step.do), ("When", "" if step.when.lower() == f"{needs}.".lower() else step.when)]
        facts += [("Only if", needs), ("For", name_frameworks(step) if step.frameworks else ""), ("Risk", step.risk)]
        facts += [("Check", "" if step.check == USUAL_CHECK else step.check), ("Source", step.source)]
        yield from _section(step.title, facts=facts)


def _needs(rule: Rule) -> Iterator[tuple[str, str]]:
    needed = {name for group in rule.requires for name in group}
    for group in rule.requires:
        yield "Required", " or ".join(f"{BY_NAME[name].recorded_by} ({name})" for name in group)
    wanted = group_pairs((BY_NAME[name].recorded_by, name) for name in rule.wants if name not in needed)
    yield from (("Also uses", f"{field} ({', '.join(names)})") for field, names in wanted.items())
    yield "Required", rule.recording or ("" if rule.requires or rule.wants else "nothing but timestamps")
    if not rule.recording and all(recording_advice.is_recorded(BY_NAME[name]) for name in needed):
        yield "Recorded by", "gpureport record"


def list_steps_by_cause(kind: str, most: int | None = None) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    held = group_pairs((steps[:most], cause or "other") for cause, steps in KINDS[kind].steps.items())
    yield from ((causes, steps) for steps, causes in held.items())


def _steps_by_cause(kinds: Sequence[str], most: int | None = None) -> Iterator[tuple[str, str]]:
    for kind in kinds:
        for causes, steps in list_steps_by_cause(kind, most):
            words = [kind] if len(kinds) > 1 else []
            words += [", ".join(causes)] if len(KINDS[kind].steps) > 1 else []
            numbered = "; ".join(f"{place}. {STEPS[name].title}" for place, name in enumerate(steps, 1))
            yield ", ".join(words), numbered or "nothing"


def name_frameworks(step: Step) -> str:
    named = display.join_words([str(each) for each in step.frameworks if each is not None])
    if not named:
        return "a run without a named framework"
    return f"{named}, or a run without a named framework" if None in step.frameworks else f"a run with {named}"


def _find_class(name: str) -> str | None:
    known = {re.sub("[ -]", "_", terms.CLASSES[key].lower()): key for key in GPU_TIME_CLASSES}
    word = re.sub("[ -]", "_", name.lower())
    return word if word in GPU_TIME_CLASSES else known.get(word)


def _explain_class(name: str) -> list[Block]:
    key = _find_class(name)
    if key is None:
        return []
    title = terms.CLASSES[key]
    counted = "as lost" if key in LOST_CLASSES else _SAID["counted"].get(key, "not as lost")
    facts = [("Counted", counted), ("Findings", ", ".join(kinds_by_gpu_time_class(RULES).get(key, ())))]
    return [*_section(f"{key}: {title}", dict(terms.DEFINITIONS)[title]), *_section("Class of GPU time", facts=facts)]


def _explain_metrics(name: str, rules: Sequence[Rule]) -> list[Block]:
    field = canonicalize(name)
    metrics = [
        metric
        for metric in METRICS
        if name in {metric.name, metric.otel, metric.recorded_by}
        or metric.recorded_by == field
        or find_target(field) == metric.name
    ]
    if len(metrics) == 1:
        return _section(metrics[0].name, facts=_metric_facts(metrics[0], rules))
    if metrics:
        title = f"{name} matches {len(metrics)} metrics"
        return _section(title, facts=[(metric.name, metric.brief) for metric in metrics])
    if field in ATTRIBUTE_FIELDS and name not in _FIGURES:
        return _section(name, "This field describes a GPU and is stored once per run, not as a series.")
    return []


def _metric_facts(metric: Metric, rules: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    describes, source = _SAID["scopes"][metric.scope.value]
    source = "DCGM field" if metric.recorded_by.startswith("DCGM_FI_") else source
    needed = [kind for rule in rules for kind in rule.kinds if any(metric.name in group for group in rule.requires)]
    wanted = [kind for rule in rules for kind in rule.kinds if metric.name in rule.wants and kind not in needed]
    yield from (("Meaning", metric.brief), ("Unit", _SAID["units"].get(metric.unit, metric.unit)))
    yield from (("Behaves as", metric.kind.value), ("Describes", describes), ("A value covers", metric.covers))
    yield "Recorded by", f"{'gpureport record: ' * recording_advice.is_recorded(metric)}{metric.recorded_by} ({source})"
    yield "OpenTelemetry", metric.otel or "has no name for it"
    yield from (("Needed by", ", ".join(needed)), ("Used by", ", ".join(wanted)))


def _hint(name: str, rules: Sequence[Rule]) -> str:
    asked = name.lower().replace("isation", "ization")
    own = [RECORDING, *kinds_by_name(rules), *(metric.name for metric in METRICS)]
    own += [metric.recorded_by for metric in METRICS] + list(ATTRIBUTE_FIELDS)
    known = _list_titles(rules) | {metric.otel: metric.name for metric in METRICS if metric.otel}
    known |= dict(ALIASES) | {name: name for name in own}
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
    return f"did you mean {words}?" if names else "run gpureport explain to list all names"


def _list_titles(rules: Sequence[Rule]) -> dict[str, str]:
    return {terms.kind_title(kind).lower(): kind for rule in rules for kind in rule.kinds}


def _index(rules: Sequence[Rule]) -> Iterator[Block]:
    yield from _section("What gpureport explain knows")
    yield from _section("Recording", facts=[(RECORDING, "what to record for all checks")])
    kinds = [(kind, terms.kind_title(kind)) for rule in rules for kind in rule.kinds]
    yield from _section("Kinds of findings", facts=kinds)
    families = [(rule.name, ", ".join(rule.kinds)) for rule in rules if rule.name not in rule.kinds]
    yield from _section("Families of kinds", facts=families)
    yield from _section("Classes of GPU time", facts=terms.CLASSES.items())
    yield from _section("Figures of a run", ", ".join(_FIGURES))
    width = max(len(metric.name) for metric in METRICS)
    metrics = [f"{metric.name:{width}}  {metric.recorded_by}" for metric in METRICS]
    yield from _section("Metrics, and what records each", code=metrics)

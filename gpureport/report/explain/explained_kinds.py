"""A kind of finding in words: its condition, limits, needs and advice."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.rulebook import Rule
from gpureport.findings import Threshold
from gpureport.metrics import BY_NAME
from gpureport.recording_advice import is_recorded
from gpureport.report.explain import step_guide
from gpureport.report.model.shapes import Explanation, Fact, Section
from gpureport.report.wording import display, terms

_UNITS = {"Cel": "°C", "By": "bytes"}


def explain_kinds(name: str, kinds: Sequence[str], rule: Rule) -> Explanation:
    """Return what one kind or a family of kinds means.

    Args:
        name: what was asked for.
        kinds: the kinds it stands for.
        rule: the rule that finds them, with its limits.
    """
    titles = "; ".join(terms.kind_title(kind) for kind in kinds)
    sections = (
        _meaning(kinds, rule),
        Section(
            title="Found when",
            paragraphs=(*map(display.clean_sentence, rule.condition), *_list_related_kinds(kinds, rule)),
        ),
        *_limits(rule),
        Section(title="Needs", facts=tuple(_needs(rule))),
        *step_guide.build_guide_sections(kinds),
    )
    return Explanation(title=f"{name}: {titles}", sections=sections)


def explain_kinds_briefly(name: str, kinds: Sequence[str], rule: Rule) -> Explanation:
    """Return what fits on a screen of it: the condition, what it needs, and what to do by name.

    Args:
        name: what was asked for.
        kinds: the kinds it stands for.
        rule: the rule that finds them, with its limits.
    """
    whole = explain_kinds(name, kinds, rule)
    steps = step_guide.guide_titles(kinds)
    return Explanation(
        title=whole.title,
        sections=(
            _meaning(kinds, rule),
            Section(title="Found when", paragraphs=(display.clean_sentence(rule.condition[0]),)),
            Section(title="Needs", facts=tuple(_needs(rule))),
            Section(title="Do", paragraphs=(f"{step_guide.number_steps(steps)}.",)),
            Section(title="", paragraphs=(_rest(name, kinds, rule, len(steps)),)),
        ),
    )


def _rest(name: str, kinds: Sequence[str], rule: Rule, steps: int) -> str:
    """Return what the first page leaves out, and how to read it."""
    parts = [
        "the condition in full",
        display.plural(len(rule.limits), "limit"),
        f"what {'each step' if steps > 1 else 'the step'} needs and risks",
    ]
    return f"gpureport explain {name} --detail full: {display.join_words(parts)}."


def _meaning(kinds: Sequence[str], rule: Rule) -> Section:
    """Return what each kind is, in a sentence."""
    return Section(title="Means", paragraphs=tuple(kind.meaning for kind in rule.descriptions if kind.name in kinds))


def _list_related_kinds(kinds: Sequence[str], rule: Rule) -> Iterator[str]:
    others = [kind for kind in rule.kinds if kind not in kinds]
    if others:
        yield f"Assessed together with {display.join_words(others)}."
    if rule.after:
        yield f"Assessed after {display.join_words(rule.after)}, whose findings it takes into account."


def _limits(rule: Rule) -> Iterator[Section]:
    facts = tuple(
        Fact(
            name=name,
            text=f"{_amount(limit)}; {limit.provenance.value}: {display.clean_sentence(limit.source)}",
        )
        for name, limit in rule.limits.items()
    )
    if facts:
        which = "one" if len(rule.settings) == len(rule.limits) else " or ".join(rule.settings)
        where = f"To change {which}, name it in gpureport.toml under [rules.{rule.name}], in base units."
        yield Section(title="Thresholds", facts=facts, paragraphs=(where,))


def _amount(limit: Threshold) -> str:
    """Return a limit as it is set, all its digits included, and a ratio in per cent too."""
    if limit.unit == "1":
        return f"{limit.value:g} ({100 * limit.value:g}%)"
    return f"{limit.value:g}{display.GAP}{_UNITS.get(limit.unit, limit.unit)}"


def _needs(rule: Rule) -> Iterator[Fact]:
    needed = {name for group in rule.requires for name in group}
    for group in rule.requires:
        yield Fact(name="Required", text=" or ".join(f"{BY_NAME[name].recorded_by} ({name})" for name in group))
    wanted: dict[str, list[str]] = {}
    for name in rule.wants:
        if name not in needed:
            wanted.setdefault(BY_NAME[name].recorded_by, []).append(name)
    for field, names in wanted.items():
        yield Fact(name="Also uses", text=f"{field} ({', '.join(names)})")
    if rule.recording:
        yield Fact(name="Required", text=rule.recording)
    elif not rule.requires and not rule.wants:
        yield Fact(name="Required", text="nothing but time stamps")
    if not rule.recording and all(is_recorded(BY_NAME[name]) for name in needed):
        yield Fact(name="Recorded by", text="gpureport record")

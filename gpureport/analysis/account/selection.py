"""Applies a user's choice of kinds and limits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import FORMER, Limits, Rule
from gpureport.errors import SettingsError
from gpureport.findings import Provenance, Threshold
from gpureport.settings import Settings


def kinds_by_name(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the kinds that each name selects. A rule's name selects all its kinds."""
    names = {kind: (kind,) for rule in rules for kind in rule.kinds}
    return names | {rule.name: rule.kinds for rule in rules if rule.name not in names}


def _look_up_kinds(names: Iterable[str], known: dict[str, tuple[str, ...]], option: str) -> set[str]:
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known kinds are {', '.join(sorted(known))}"
            raise SettingsError(option, f"no kind {name!r}", hint, code="unknown_kind")
    return {kind for name in names for kind in known[name]}


def list_settings(rule: Rule) -> dict[str, Threshold]:
    return {name: rule.limits[name] for name in rule.settings}


def select_kinds(rules: Sequence[Rule], select: Sequence[str], ignore: Sequence[str]) -> set[str]:
    known = kinds_by_name(rules)
    return _look_up_kinds(select or known, known, "--select") - _look_up_kinds(ignore, known, "--ignore")


def keep_kinds(analysis: Analysis, kinds: set[str]) -> Analysis:
    return replace(
        analysis,
        findings=tuple(finding for finding in analysis.findings if finding.kind in kinds),
        not_judged=tuple(entry for entry in analysis.not_judged if entry.kind in kinds),
        answers=tuple(answer for answer in analysis.answers if answer.kind in kinds),
    )


def apply_settings(rules: Sequence[Rule], settings: Settings) -> tuple[Rule, ...]:
    settings.section("rules").only({rule.name for rule in rules})
    changed = []
    for rule in rules:
        section, limits = settings.section(f"rules.{rule.name}"), Limits(rule.limits)
        if section.values:
            former = {*rule.limits, *(FORMER if rule.settings else ())}
            section.only({*rule.settings, *(former & {*section.values})})
        for key in (key for key in rule.settings if key in section.values):
            value = float(section.number(key) or 0)
            limits[key] = replace(limits[key], value=value, provenance=Provenance.SETTINGS, source=section.file)
        changed.append(replace(rule, limits=limits))
    return tuple(changed)


def list_ignored_settings(rules: Sequence[Rule], settings: Settings) -> Iterator[str]:
    for rule in rules:
        section = settings.section(f"rules.{rule.name}")
        names = [name for name in section.values if name not in rule.settings]
        if names:
            yield (
                f"{section.at(names[0])}: {', '.join(names)} in [{section.name}] can no longer be set; "
                f"the default is used. You can set {', '.join(rule.settings)}."
            )

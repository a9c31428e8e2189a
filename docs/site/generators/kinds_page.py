"""Writes docs/reference/kinds.md from the TOML: the checks, the limits that can be set, and the advised steps."""

import re
from collections.abc import Iterator
from itertools import groupby

from generators.pages import MADE, table
from gpureport.analysis import RULES
from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.rulebook import KindDescription, Rule
from gpureport.findings import Threshold
from gpureport.report.explanation import list_steps_by_cause

_UNITS = {"Cel": (1, "°C"), "By": (2**-20, "MiB"), "By/s": (1e-6, "MB/s"), "Hz": (1e-6, "MHz")}
_MOST_STEPS = 3
_STEPS_OF_A_CAUSE = 1
_HEAD = f"""# Checks

What gpureport looks for, and what to do about it. A check that lacks data is not assessed. `gpureport
explain KIND --detail full` prints all conditions, limits with reasons, and steps with risks and sources.
Each picture links to its sample log. The affected GPU is blue, others are grey, and the time of the finding is shaded.

{MADE}"""
_LIMITS = """## Limits that can be set

Set them in [`gpureport.toml`](../explanation/thresholds.md), in base units: `shortest = 10` under `[rules.idle_gap]`.
"""
_STEPS = """## The steps

A finding lists steps, the most promising first. It omits those that the recording rules out, that params or tags show
as taken, or that are for another framework. Without a tracker, state the params: `gpureport analyze gpu.csv
--param num_workers=2 --param cpu_count=16`.

These are the first steps of each check; `explain` prints the others. Change one thing at a time and let `gpureport
compare` assess it by the work done per GPU-hour: utilisation can rise while the job gets slower. Its [table of
gains](../how-to/compare-steps.md#read-the-table-of-gains) names the steps that were taken.
"""


def kinds_page() -> str:
    """Return docs/reference/kinds.md, with the steps that it names."""
    kinds = [(rule, kind, list(_choose_steps(kind))) for rule in RULES for kind in rule.descriptions]
    limits = [(_name_rule(rule), ", ".join(_list_limits(rule))) for rule in RULES if rule.limits]
    named = {name for _, _, chosen in kinds for _, names in chosen for name in names}
    parts = [_HEAD, *(_describe_kind(*each) for each in kinds)]
    parts += [_LIMITS, table(("rule", "limits"), limits), _STEPS]
    for chapter, steps in groupby((STEPS[name] for name in STEPS if name in named), key=lambda step: step.chapter):
        parts += [f"## {chapter}\n", *(f"### {step.title}\n\n{step.do}\n" for step in steps)]
    return "\n".join(parts)


def _choose_steps(kind: KindDescription) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the causes of a kind, each with the first advised steps."""
    most = _STEPS_OF_A_CAUSE if len(kind.steps) > 1 else _MOST_STEPS
    yield from ((list(causes), list(names)) for causes, names in list_steps_by_cause(kind.name, most))


def _describe_kind(rule: Rule, kind: KindDescription, chosen: list[tuple[list[str], list[str]]]) -> str:
    """Return the section on a kind: its meaning, picture, condition and needs, and the first advised steps."""
    links = [(causes, ", ".join(map(_link_step, names)) or "nothing") for causes, names in chosen]
    steps = "; ".join(f"*{', '.join(causes)}:* {text}" for causes, text in links)
    needs = "; ".join(" or ".join(f"`{metric}`" for metric in group) for group in rule.requires)
    parts = (
        f"## {kind.name}",
        f"**{kind.title}.** {kind.meaning}",
        f"[![{kind.title}](../images/kinds/{kind.name}.svg)](../../sample_logs/{kind.name}/README.md)",
        f"**Condition.** {rule.conditions[kind.name]}{f' Requires {needs}.' if needs else ''}",
        f"**Advice**, by cause: {steps}." if len(links) > 1 else f"**Advice.** {links[0][1]}.",
    )
    return "\n\n".join(parts) + "\n"


def _link_step(name: str) -> str:
    """Return a link to a step; the site and GitHub derive its anchor from the title."""
    title = STEPS[name].title
    return f"[{title}](#{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')})"


def _name_rule(rule: Rule) -> str:
    """Return the name of a rule, and those of the kinds it finds if they differ."""
    others = [f"`{kind}`" for kind in rule.kinds if kind != rule.name]
    return f"`{rule.name}`" + (f": {', '.join(others)}" if others else "")


def _list_limits(rule: Rule) -> Iterator[str]:
    """Yield the limits of a rule that can be set."""
    yield from (_format_limit(name, limit) for name, limit in rule.limits.items() if name in rule.settings)


def _format_limit(name: str, limit: Threshold) -> str:
    scale, unit = _UNITS.get(limit.unit, (1, limit.unit.replace("1", "")))
    return f"`{name}` {f'{limit.value * scale:g} {unit}'.rstrip()}"

"""docs/reference/kinds.md: a handbook of the kinds of findings and of the steps against them, from the TOML."""

import re
from collections.abc import Iterator
from itertools import groupby

from generators.pages import MADE
from gpureport.analysis import RULES
from gpureport.analysis.advice.checklist import ITEMS
from gpureport.analysis.advice.choose import STEPS, USUAL_CHECK, Step
from gpureport.analysis.kinds import KindDescription
from gpureport.analysis.rulebook import SHARED_LIMITS, Rule
from gpureport.findings import Provenance, Threshold
from gpureport.report.explanation import list_steps_by_cause

_UNITS = {"Cel": (1, "°C"), "By": (2**-20, "MiB"), "By/s": (1e-6, "MB/s"), "Hz": (1e-6, "MHz")}
_STEPS_NAMED = 3
_STEPS_OF_A_CAUSE = 2
_HEAD = f"""# Kinds of findings

What gpureport looks for, and what to do about it. `gpureport explain KIND --detail full` says more: all that a kind
uses, why fixed limits are as they are, all steps, when each helps, and its source. A kind that lacks data is reported
as not assessed.

Each picture leads to the sample log it shows: the GPU of the finding in blue, others in grey, its time shaded. Limits
are set in `gpureport.toml`, in base units, under the table named above them; fixed and [shared](#shared-limits) ones
follow. A limit is a pragmatic choice unless another [origin](../explanation/thresholds.md) is named.

{MADE}
[How a kind is added](../contributing/add-a-detector.md).
"""
_STEPS = f"""## The steps

A finding names its steps, the most promising first. It leaves out a step that its recording rules out, that params or
tags show as taken, or that is for another framework. One that was not taken comes first; one with unknown needs comes
last and names them. Without a tracker, state params: `gpureport analyze gpu.csv --param num_workers=2 --param
cpu_count=16`. The number of loader workers to try is twice the present one, at most one per core for each process,
unless the job keeps less than half a core busy.

Change one thing at a time and let `gpureport compare` assess it by the work done per GPU-hour: utilisation can rise
while the job gets slower. Its [table of gains](../how-to/compare-steps.md#read-the-table-of-gains) names advised steps
that were taken. A step without a check worked if the next report lacks the finding.

The checklist of a report says of every run what is done, worth trying or not assessed: {"; ".join(ITEMS.values())}.
"""


def kinds_page() -> str:
    """Return docs/reference/kinds.md."""
    kinds = [(rule, kind) for rule in RULES for kind in rule.descriptions]
    parts = [_HEAD, ", ".join(f"[{kind.title}](#{kind.name})" for _, kind in kinds) + "\n"]
    parts += [part for rule, kind in kinds for part in _describe_kind(rule, kind)]
    parts += ["## Shared limits\n", *(f"- {_format_limit(*each)}" for each in SHARED_LIMITS.items()), "", _STEPS]
    for chapter, steps in groupby(STEPS.values(), key=lambda step: step.chapter):
        parts += [f"## {chapter}\n", *map(_describe_step, steps)]
    return "\n".join(parts)


def _describe_kind(rule: Rule, kind: KindDescription) -> Iterator[str]:
    """Yield meaning, picture, condition, steps and limits; what kinds of one rule share stands with its first."""
    name, first = kind.name, rule.kinds[0]
    picture = f"[![{kind.title}](../images/kinds/{name}.svg)](../../sample_logs/{name}/README.md)"
    yield f"## {name}\n\n**{kind.title}.** {kind.meaning}\n\n{picture}\n"
    more = rule.more if name == first else (f"Details and limits: [{first}](#{first}).",)
    items = [text for text in more if text.startswith("- ")]
    yield " ".join([f"**Found when.** {rule.conditions[name]}", *(text for text in more if text not in items)]) + "\n"
    if items:
        yield "\n".join(items) + "\n"
    if rule.requires and name == first:
        yield f"Needs {'; '.join(' or '.join(f'`{metric}`' for metric in group) for group in rule.requires)}.\n"
    most = _STEPS_OF_A_CAUSE if len(kind.steps) > 1 else _STEPS_NAMED
    chosen = [(causes, ", ".join(map(_link_step, steps))) for causes, steps in list_steps_by_cause(name, most)]
    if len(chosen) == 1:
        yield f"**Do.** {chosen[0][1]}\n"
    else:
        yield "**Do**, by cause:\n"
        yield "\n".join(f"- {', '.join(causes)}: {links or 'nothing'}" for causes, links in chosen) + "\n"
    if name == first:
        yield from _fold_limits(rule)


def _link_step(name: str) -> str:
    """Return a link to a step, whose anchor the site and GitHub make of its title."""
    title = STEPS[name].title
    return f"[{title}](#{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')})"


def _fold_limits(rule: Rule) -> Iterator[str]:
    if not rule.limits:
        return
    shared = [name for name, limit in rule.limits.items() if SHARED_LIMITS.get(name) == limit]
    own = {name: _format_limit(name, limit) for name, limit in rule.limits.items() if name not in shared}
    lines = [text for name, text in own.items() if name in rule.settings]
    for title, can_be_set in (("Shared", True), ("Shared and fixed", False)):
        names = ", ".join(f"`{name}`" for name in shared if (name in rule.settings) == can_be_set)
        lines += [f"[{title}](#shared-limits): {names}"] if names else []
    fixed = [name for name in own if name not in rule.settings]
    is_plain = {name: rule.limits[name].provenance is Provenance.PRAGMATIC for name in fixed}
    texts = [own[name].partition(" (")[0] if is_plain[name] else own[name] for name in fixed]
    lines += [f"Fixed: {', '.join(texts)}"] if fixed else []
    yield f'<details markdown="1">\n<summary>Limits: <code>[rules.{rule.name}]</code></summary>\n'
    yield "\n".join(f"- {line}" for line in lines) + "\n\n</details>\n"


def _format_limit(name: str, limit: Threshold) -> str:
    scale, unit = _UNITS.get(limit.unit, (1, limit.unit.replace("1", "")))
    origin = "" if limit.provenance is Provenance.PRAGMATIC else f"{limit.provenance.value}, "
    return f"`{name}` {f'{limit.value * scale:g} {unit}'.rstrip()} ({origin}{limit.source})"


def _describe_step(step: Step) -> str:
    parts = [f"### {step.title}\n\n{step.do}"]
    parts += [f"*Risk:* {step.risk}"] if step.risk != "Low." else []
    parts += [f"*Check:* {step.check}"] if step.check != USUAL_CHECK else []
    return " ".join(parts) + "\n"

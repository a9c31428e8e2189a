"""docs/reference/kinds.md: a handbook of the kinds of findings, from the rules, the samples and how each kind shows."""

from collections.abc import Iterator

from generators.kind_signs import SIGNS
from generators.pages import MADE, table
from gpureport.analysis import RULES
from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.kinds import KindDescription
from gpureport.analysis.rulebook import Rule
from gpureport.testing import Threshold

_UNITS = {"1": "", "": "", "s": " s", "Cel": " °C", "W": " W", "By": " bytes", "Hz": " Hz"}
_HEAD = f"""# Kinds of findings

What gpureport looks for, and what to do where it finds it. Each picture shows the sample log of the kind: the GPU of
the finding in blue, others in grey, the time of the finding shaded. A kind that lacks what it needs is listed as not
assessed, with what to record. `gpureport explain KIND` prints condition and steps in the terminal. A limit whose source
names neither vendor nor literature is a pragmatic choice.

{MADE}
[How a kind is added](../contributing/add-a-detector.md).
"""


def kinds_page() -> str:
    """Return docs/reference/kinds.md."""
    kinds = [kind for rule in RULES for kind in rule.descriptions]
    rows = [(f"[{kind.title}](#{kind.name})", kind.meaning) for kind in kinds]
    parts = [_HEAD, table(("kind", "what it means"), rows)]
    for rule in RULES:
        for kind in rule.descriptions:
            parts += [*_describe_kind(kind), *_fold_condition(rule, kind)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _describe_kind(kind: KindDescription) -> Iterator[str]:
    """Yield what the kind means, how it shows, and what to do."""
    yield f"## {kind.name}\n"
    yield f"**{kind.title}.** {kind.meaning}\n"
    if kind.name in SIGNS:
        yield f"![{kind.title}, as the sample log shows it](../images/kinds/{kind.name}.svg)\n"
        yield f"**In nvidia-smi.** {SIGNS[kind.name].text}\n"
    sample = f"[the sample](../../sample_logs/{kind.name}/README.md)"
    yield "**What to do.**\n"
    for cause, steps in kind.steps.items():
        yield f"- {f'{cause}: ' if cause else ''}{'; '.join(STEPS[name].title for name in steps) or 'nothing'}"
    yield ""
    yield f"See also {sample}, and [all steps](../explanation/advice.md#which-steps-for-which-kind) for this kind.\n"


def _fold_condition(rule: Rule, kind: KindDescription) -> Iterator[str]:
    """Yield the condition and the limits; kinds of one rule share them, so that they stand with its first."""
    first = rule.kinds[0]
    if kind.name != first:
        yield f"Found when: assessed together with [{first}](#{first}), by the condition given there.\n"
        return
    yield '<details markdown="1">'
    yield "<summary>Found when, and limits</summary>\n"
    yield "\n\n".join(rule.condition) + "\n"
    limits = [(f"`{name}`", format_limit(limit), _name_source(limit)) for name, limit in rule.limits.items()]
    if limits:
        yield table(("limit", "default", "source"), limits)
        names = ", ".join(f"`{name}`" for name in rule.settings)
        which = f": {names}; the others are fixed" if names.count("`") < 2 * len(limits) else ""
        yield f"Set in `gpureport.toml` under `[rules.{rule.name}]`{which}.\n"
    needs = " and ".join(" or ".join(f"`{name}`" for name in group.split("|")) for group in _required(rule))
    if needs:
        yield f"Needs {needs}.\n"
    yield "</details>\n"


def _name_source(limit: Threshold) -> str:
    is_own = limit.provenance.value == "pragmatic"
    return limit.source if is_own else f"{limit.provenance.value}: {limit.source}"


def format_limit(threshold: Threshold) -> str:
    """Return a limit with its unit."""
    return f"{threshold.value:g}{_UNITS.get(threshold.unit, ' ' + threshold.unit)}"


def _required(rule: Rule) -> list[str]:
    return sorted({"|".join(group) for group in rule.requires})

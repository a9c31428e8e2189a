"""One limit, parsed from a line such as `gpu_utilization_ratio p5 >= 80%` or `change idle_ratio <= 2 points`."""

import re
from dataclasses import dataclass
from math import isfinite

from gpureport.checks import limit_targets, limit_units
from gpureport.checks.limit_targets import BELOW, STATISTICS, LimitTarget, TargetKind
from gpureport.checks.limit_units import COUNT, FINDINGS, NUMBER, SHARE, Quantity

_LIMIT = re.compile(
    r"(?:(?P<no>no)\s+)?(?:(?P<of>change|new)\s+)?(?P<name>\w+)(?:[.\s]\s*(?P<statistic>\w+))?\s*(?:(?P<relation><=|>=|<|>)(?P<threshold>.*))?"
)
_TRAINING = re.compile(
    r"(?:(?P<of>change)\s+)?(?:(?P<named>training)\s+)?(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s<>=\"]+))(?:\s+(?P<statistic>final|best))?"
    r"\s*(?P<relation><=|>=|<|>)(?P<threshold>.*)"
)
_EXAMPLE = "write one such as 'idle_ratio <= 5%' or 'no thermal_throttle'"
_SCALED = {"W", "By", "By/s", "Hz", "J", "Cel", "s"}


class LimitError(ValueError):
    """A text does not state a limit.

    Args:
        what: what is wrong with it.
        hint: what to write instead.
        code: what is wrong in one word.
    """

    def __init__(self, what: str, hint: str, *, code: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on one figure, or on findings.

    Attributes:
        subject: what kind of thing is limited.
        name: its name.
        statistic: of a metric or a training metric; empty for other things.
        relation: `<=`, `<`, `>=` or `>`.
        threshold: what a value is compared with.
        words: the limit as it can be written again.
    """

    subject: TargetKind
    name: str
    statistic: str
    relation: str
    threshold: Quantity
    words: str

    @property
    def is_upper(self) -> bool:
        """Whether it is an upper limit."""
        return self.relation.startswith("<")

    def holds(self, value: float) -> bool:
        """Return whether a value is within it, up to rounding errors."""
        limit = self.threshold.value
        near = isfinite(value) and abs(value - limit) <= 1e-9 * max(abs(value), abs(limit))
        if near:
            return self.relation.endswith("=")
        return value < limit if self.is_upper else value > limit


def parse_limit(text: str) -> Limit:
    """Return the limit a text states.

    Raises:
        LimitError: when it states none.
    """
    text = " ".join(text.split())
    training = _parse_training_limit(text)
    if training is not None:
        return training
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise LimitError(f"{text!r} is no limit", _EXAMPLE, code="not_a_limit")
    of, name, statistic, relation = (match[part] or "" for part in ("of", "name", "statistic", "relation"))
    found = _resolve_target(of, name)
    if statistic and found.subject is not TargetKind.STATISTIC:
        raise LimitError(
            f"{name} has no statistic {statistic!r}", "leave the second word out", code="unknown_statistic"
        )
    if match["no"] and relation:
        raise LimitError(f"{text!r} says no and how many", "write one of the two", code="not_a_limit")
    threshold = _parse_threshold(match["threshold"], name, found) if relation else _no_findings(name, found)
    words = " ".join(filter(None, ("" if relation else "no", of, name, _resolve_statistic(name, statistic, found))))
    return Limit(
        subject=found.subject,
        name=name,
        statistic=_resolve_statistic(name, statistic, found),
        relation=relation or "<=",
        threshold=threshold,
        words=f"{words} {relation} {threshold.text}" if relation else words,
    )


def _parse_training_limit(text: str) -> Limit | None:
    """Return the limit on a training metric that a text states; None if it is on something else."""
    match = _TRAINING.fullmatch(text)
    if match is None:
        return None
    name, of, named = match["quoted"] or match["plain"], match["of"] or "", match["named"] or ""
    found = None
    if named or (limit_targets.find_target(name) is None and not match["quoted"]):
        found = limit_targets.find_training_target(name, change=bool(of), named=bool(named))
    if found is None:
        return None
    threshold = _parse_threshold(match["threshold"], name, found)
    statistic = match["statistic"] or limit_targets.FINAL
    written = f'"{name}"' if match["quoted"] else name
    words = " ".join(filter(None, (of, named, written, statistic, match["relation"], threshold.text)))
    return Limit(
        subject=found.subject,
        name=name,
        statistic=statistic,
        relation=match["relation"],
        threshold=threshold,
        words=words,
    )


def _resolve_target(of: str, name: str) -> LimitTarget:
    found = limit_targets.find_change_target(name) if of == "change" else limit_targets.find_target(name)
    if found is None:
        what = f"no figure {name!r} whose change is known" if of == "change" else f"nothing is called {name!r}"
        raise LimitError(what, limit_targets.suggest_name(name, change=of == "change"), code="unknown_limit_name")
    if of == "new":
        if found.subject is not TargetKind.FINDING:
            hint = "write new before a kind or a severity"
            raise LimitError(f"{name} is no kind of finding", hint, code="unknown_kind")
        return LimitTarget(subject=TargetKind.NEW, units=(FINDINGS,))
    return found


def _resolve_statistic(name: str, written: str, found: LimitTarget) -> str:
    if found.subject is not TargetKind.STATISTIC:
        return ""
    known = (*STATISTICS, *(BELOW if name == "gpu_utilization_ratio" else ()))
    if written and written not in known:
        hint = f"known are {', '.join(known)}"
        raise LimitError(f"{name} has no statistic {written!r}", hint, code="unknown_statistic")
    return written or "mean"


def _no_findings(name: str, found: LimitTarget) -> Quantity:
    """Return the threshold of a limit without one: no finding at all."""
    if found.subject not in {TargetKind.FINDING, TargetKind.NEW}:
        hint = f"write {name} <= and {limit_units.describe_unit(found.units[0])}"
        raise LimitError(f"{name} without an amount", hint, code="no_amount")
    return Quantity(value=0.0, unit=FINDINGS)


def _parse_threshold(text: str, name: str, found: LimitTarget) -> Quantity:
    threshold = limit_units.parse_quantity(text)
    if threshold is None:
        hint = f"write {limit_units.describe_unit(found.units[0])}"
        raise LimitError(f"{text.strip()!r} is no amount", hint, code="not_an_amount")
    plain = next((unit for unit in (FINDINGS, NUMBER) if unit in found.units), None)
    if threshold.unit == COUNT and plain is not None:
        threshold = Quantity(value=threshold.value, unit=plain, text=threshold.text)
    if threshold.unit == COUNT and not {*found.units} & {SHARE, *_SCALED}:
        threshold = Quantity(value=threshold.value, unit=found.units[-1], text=threshold.text)
    if threshold.unit not in found.units:
        allowed = " or ".join(limit_units.describe_unit(unit) for unit in found.units)
        raise LimitError(f"{name} is not limited by {text.strip()!r}", f"write {allowed}", code="wrong_unit")
    if found.subject is TargetKind.CHANGE and threshold.value == 0:
        hint = "state the size from which it matters"
        raise LimitError(f"a change of {name} of 0 is within any noise", hint, code="no_amount")
    return threshold

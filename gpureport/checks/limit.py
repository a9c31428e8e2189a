"""One limit, read from a line such as `gpu_utilization_ratio p5 >= 80 %` or `change idle_ratio <= 2 points`."""

import re
from dataclasses import dataclass

from gpureport.checks import amounts, subjects
from gpureport.checks.amounts import COUNT, FINDINGS, SHARE, Amount
from gpureport.checks.subjects import BELOW, STATISTICS, Known, Subject

_FORM = re.compile(
    r"(?:(?P<no>no)\s+)?(?:(?P<of>change|new)\s+)?(?P<name>\w+)(?:[.\s]\s*(?P<statistic>\w+))?\s*(?:(?P<relation><=|>=|<|>)(?P<amount>.*))?"
)
_EXAMPLE = "write one such as 'idle_ratio <= 5 %' or 'no thermal_throttle'"
_SCALED = {"W", "By", "By/s", "Hz", "J", "Cel", "s"}


class LimitError(ValueError):
    """A text is no limit.

    Args:
        what: what is wrong with it.
        hint: what to write instead.
    """

    def __init__(self, what: str, hint: str) -> None:
        """Keep both parts."""
        super().__init__(what)
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on one thing.

    Attributes:
        subject: what kind of thing it is.
        name: its name.
        statistic: of a metric; empty for other things.
        relation: `<=`, `<`, `>=` or `>`.
        amount: what it is held against.
        words: the limit as it can be written again.
    """

    subject: Subject
    name: str
    statistic: str
    relation: str
    amount: Amount
    words: str

    @property
    def most(self) -> bool:
        """Whether it limits from above."""
        return self.relation.startswith("<")

    def holds(self, value: float) -> bool:
        """Return whether a value keeps to it, up to the rounding of a computation."""
        limit = self.amount.value
        near = abs(value - limit) <= 1e-9 * max(abs(value), abs(limit))
        if near:
            return self.relation.endswith("=")
        return value < limit if self.most else value > limit


def parse(text: str) -> Limit:
    """Return the limit a text states.

    Raises:
        LimitError: when it states none.
    """
    match = _FORM.fullmatch(" ".join(text.split()))
    if match is None:
        raise LimitError(f"{text!r} is no limit", _EXAMPLE)
    of, name, statistic, relation = (match[part] or "" for part in ("of", "name", "statistic", "relation"))
    found = _known(of, name)
    if statistic and found.subject is not Subject.STATISTIC:
        raise LimitError(f"{name} has no statistic {statistic!r}", "leave the second word out")
    if match["no"] and relation:
        raise LimitError(f"{text!r} says no and how many", "write one of the two")
    amount = _amount(match["amount"], name, found) if relation else _none(name, found)
    words = " ".join(filter(None, ("" if relation else "no", of, name, _statistic(name, statistic, found))))
    return Limit(
        subject=found.subject,
        name=name,
        statistic=_statistic(name, statistic, found),
        relation=relation or "<=",
        amount=amount,
        words=f"{words} {relation} {amount.text}" if relation else words,
    )


def _known(of: str, name: str) -> Known:
    found = subjects.changing(name) if of == "change" else subjects.known(name)
    if found is None:
        what = f"no figure {name!r} whose change is known" if of == "change" else f"nothing is called {name!r}"
        raise LimitError(what, subjects.close(name, change=of == "change"))
    if of == "new":
        if found.subject is not Subject.FINDING:
            raise LimitError(f"{name} is no kind of finding", "write new before a kind or a severity")
        return Known(subject=Subject.NEW, units=(FINDINGS,))
    return found


def _statistic(name: str, written: str, found: Known) -> str:
    if found.subject is not Subject.STATISTIC:
        return ""
    known = (*STATISTICS, *(BELOW if name == "gpu_utilization_ratio" else ()))
    if written and written not in known:
        raise LimitError(f"{name} has no statistic {written!r}", f"known are {', '.join(known)}")
    return written or "mean"


def _none(name: str, found: Known) -> Amount:
    """Return the limit of what is named without an amount: no finding at all."""
    if found.subject not in {Subject.FINDING, Subject.NEW}:
        raise LimitError(f"{name} without an amount", f"write {name} <= and {amounts.name(found.units[0])}")
    return Amount(value=0.0, unit=FINDINGS)


def _amount(text: str, name: str, found: Known) -> Amount:
    amount = amounts.read(text)
    if amount is None:
        raise LimitError(f"{text.strip()!r} is no amount", f"write {amounts.name(found.units[0])}")
    if amount.unit == COUNT and FINDINGS in found.units:
        amount = Amount(value=amount.value, unit=FINDINGS, text=amount.text)
    if amount.unit == COUNT and not {*found.units} & {SHARE, *_SCALED}:
        amount = Amount(value=amount.value, unit=found.units[-1], text=amount.text)
    if amount.unit not in found.units:
        allowed = " or ".join(amounts.name(unit) for unit in found.units)
        raise LimitError(f"{name} is not limited by {text.strip()!r}", f"write {allowed}")
    if found.subject is Subject.CHANGE and amount.value == 0:
        raise LimitError(f"a change of {name} of 0 is within any noise", "state the size from which it matters")
    return amount

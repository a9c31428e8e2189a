"""Parses limits such as `gpu_utilization_ratio p5 >= 80%` or `change idle_ratio <= 2 points`.

A limit consists of `no`, `change` or `new`, a name, a statistic, a relation and an amount; only the name is required.
The name of a training metric may follow the word `training`, and is quoted if it contains spaces. Amounts (`5%`, `10
min`, `80 GiB`, `3 EUR`) are stored in base units.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from math import isclose, isfinite

from gpureport.analysis import RULES
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES
from gpureport.analysis.rulebook import KINDS
from gpureport.comparison.figures import BY_METRIC, SECONDS_TO_TARGET, TRAINING_RATE
from gpureport.errors import SettingsError
from gpureport.findings import Severity
from gpureport.metrics import BY_NAME, METRICS, MetricKind
from gpureport.names import QUALITY_ROLES, recognise_metric
from gpureport.parsing import UNITS, Unit
from gpureport.report.wording import display

SHARE, POINTS, TIME, MONEY, FINDINGS, COUNT, NUMBER = "1", "points", "s", "currency", "findings", "", "number"
"""Units other than the base units of metrics."""
_DECIMALS = 13
"""Number of decimals that shows any difference larger than a rounding error."""
_LONGEST = 100
"""Maximum characters in a quantity, as matching takes quadratic time."""
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+))\s*(\S+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
"""Matches a number whose comma may separate thousands or decimals."""
_CURRENCY = re.compile(r"[A-Z]{3}|[€$£¥]")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "GPU-s": 1, "GPU-min": 60, "GPU-h": 3600}
# nvidia-smi writes MB where it means MiB, but users do not
_UNITS = {name: unit for name, unit in UNITS.items() if name != "MB"} | {
    **dict.fromkeys(("points", "point"), Unit(POINTS, 1, 100)),
    **dict.fromkeys(("findings", "finding"), Unit(FINDINGS, 1)),
    "GB": Unit("By", 10**9),
    "GB/s": Unit("By/s", 10**9),
    "Wh": Unit("J", 3600),
    "kWh": Unit("J", 3_600_000),
    "kJ": Unit("J", 1000),
    "MJ": Unit("J", 10**6),
    "g": Unit("g", 1),
    "kg": Unit("g", 1000),
    "/s": Unit("1/s", 1),
    **{name: Unit(TIME, seconds) for name, seconds in _SECONDS.items()},
}
_EXAMPLES = {
    SHARE: "a share such as 5%",
    POINTS: "points such as 2 points",
    TIME: "a time such as 10 min",
    MONEY: "a sum such as 3 EUR",
    FINDINGS: "a number of findings such as 3",
    COUNT: "a number such as 3",
    "By": "a size such as 80 GiB",
    "By/s": "a rate such as 12 GB/s",
    "W": "a power such as 300 W",
    "J": "an energy such as 2 kWh",
    "Cel": "a temperature such as 85 °C",
    "Hz": "a clock such as 1,500 MHz",
    NUMBER: "a number such as 0.78",
    "g": "a mass such as 2 kg",
    "1/s": "a rate such as 40 /s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    value: float
    unit: str
    currency: str = ""
    text: str = ""


def parse_quantity(text: str) -> Quantity | None:
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or _AMBIGUOUS.fullmatch(match[1]):
        return None
    word = match[2] or ""
    currency = word if _CURRENCY.fullmatch(word) else ""
    unit = Unit(MONEY, 1) if currency else _UNITS.get(word)
    value = unit.to_base(float(match[1].replace(",", "."))) if unit else None
    if unit is None or value is None or not isfinite(value):
        return None
    return Quantity(value=value, unit=unit.base, currency=currency, text=_join(match[1], word))


def format_quantity(value: float, unit: str, currency: str = "") -> str:
    if unit == MONEY:
        return display.money(value, currency)
    if unit == FINDINGS:
        return display.plural(round(value), "finding")
    plain = {POINTS: display.percentage_points, NUMBER: display.number, COUNT: display.integer}.get(unit)
    return plain(value) if plain else display.quantity(value, unit)


def format_against_limit(value: float, limit: Quantity, words: Callable[[float], str] | None = None) -> str:
    read = words or (lambda each: format_quantity(each, limit.unit, limit.currency))
    parts = _QUANTITY.fullmatch(limit.text)
    word = parts[2] or "" if parts else ""
    text, at_limit = read(value), read(limit.value)
    if isclose(value, limit.value):
        # a value just below 10,000 would be printed as 10000.00
        rounded = (shown := parse_quantity(at_limit)) and not isclose(shown.value, limit.value)
        return _join(parts[1], word, gap=display.GAP) if parts and rounded else at_limit
    if text != at_limit:
        return text
    scale = _UNITS.get(word, Unit(limit.unit, 1)).to_base(1)
    own, other = value / scale, limit.value / scale
    # use the fewest decimals that show on which side of the limit the value is
    texts = (f"{own:.{decimals}f}" for decimals in range(_DECIMALS))
    differing = (text for text in texts if (float(text) > other) == (own > other) and not isclose(float(text), other))
    return _join(next(differing, str(own)), word, gap=display.GAP)


def _join(number: str, unit: str, gap: str = " ") -> str:
    return f"{number}{'' if unit == '%' else gap}{unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Why:
    """A reason: a code for programs and text for people; falsy if empty."""

    code: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)


NO_REASON = Why()


class Subject(StrEnum):
    STATISTIC = "statistic of a device"
    DEVICE = "figure of a GPU"
    FIGURE = "figure of all GPUs"
    GPU_TIME = "class of GPU time"
    RUN = "figure of the run"
    TRAINING = "figure of the training"
    FINDING = "findings"
    CHANGE = "change"
    NEW = "new findings"


@dataclass(frozen=True, slots=True)
class Limit:
    """`words` is the standard form, which parses to the same limit."""

    subject: Subject
    name: str
    statistic: str
    relation: str
    threshold: Quantity
    words: str

    @property
    def is_upper(self) -> bool:
        return self.relation.startswith("<")

    @property
    def needs_baseline(self) -> bool:
        return self.subject in {Subject.CHANGE, Subject.NEW}

    @property
    def demands_change(self) -> bool:
        return not self.holds(0.0)

    @property
    def size(self) -> str:
        return self.threshold.text.lstrip("+-")

    def holds(self, value: float) -> bool:
        """Return whether a value meets the limit, ignoring rounding errors."""
        limit = self.threshold.value
        if isfinite(value) and abs(value - limit) <= 1e-9 * max(abs(value), abs(limit)):
            return self.relation.endswith("=")
        return value < limit if self.is_upper else value > limit


FINAL, BEST = "final", "best"
STATISTICS = ("mean", "sample_mean", "p5", "p50", "p95", "min", "max")
"""Statistics of a metric; the default is the mean."""
BELOW = {"below_25": 0.25, "below_50": 0.5, "below_70": 0.7}
LOST = "lost"
FAMILIES = kinds_by_name(RULES)
EVERY_KIND = frozenset(kind for rule in RULES for kind in rule.kinds)
Allowed = tuple[Subject, tuple[str, ...]]
"""The subject of a name and the units of its limits, most common first."""
_FIGURES: dict[Allowed, tuple[str, ...]] = {
    (Subject.TRAINING, ("1/s",)): (TRAINING_RATE,),
    (Subject.DEVICE, (TIME,)): ("idle_seconds", "observed_seconds"),
    (Subject.DEVICE, ("By",)): ("gpu_memory_peak_bytes",),
    (Subject.DEVICE, (SHARE,)): ("gpu_memory_headroom_ratio",),
    (Subject.RUN, (MONEY,)): ("cost", "idle_cost"),
    (Subject.RUN, ("g",)): ("carbon",),
    (Subject.RUN, (TIME,)): ("duration",),
    (Subject.RUN, (SHARE,)): ("coverage",),
    (Subject.RUN, (COUNT,)): ("rejected", "not_judged"),
    (Subject.TRAINING, (TIME,)): (SECONDS_TO_TARGET, "gpu_seconds_to_target"),
    (Subject.TRAINING, (MONEY,)): ("cost_to_target",),
    (Subject.GPU_TIME, (SHARE, TIME)): (*GPU_TIME_CLASSES, LOST),
    (Subject.FINDING, (FINDINGS, SHARE, TIME, MONEY)): (*FAMILIES, *Severity),
}
FIGURES: dict[str, Allowed] = {
    **{each.metric: (Subject.FIGURE, (each.unit,)) for each in BY_METRIC.values()},
    **{name: allowed for allowed, names in _FIGURES.items() for name in names},
    # a limit on a state applies to its share of the time
    **{
        each.name: (Subject.STATISTIC, (SHARE if each.kind is MetricKind.STATE else each.unit,))
        for each in METRICS
        if each.kind is not MetricKind.COUNTER
    },
}
"""Every name that a limit may use without a prefix. A metric precedes a figure."""
_LOW = {*LOST_CLASSES, LOST, *FAMILIES, *Severity}
_SCALED = {SHARE, TIME, "W", "By", "By/s", "Hz", "J", "Cel"}
_NEAR, _CLOSE = 0.85, 0.7
"""Minimum similarity to treat a name as misspelt, and to suggest one."""
_SUGGESTED = 3  # maximum number of kinds
_LIMIT = re.compile(
    r"(?:(?P<no>no)\s+)?(?:(?P<of>change|new)\s+)?(?:(?P<training>training)\s+)?"
    r"(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s<>=\"]+))(?:\s+(?P<statistic>\w+))?"
    r"\s*(?:(?P<relation><=|>=|<|>)(?P<amount>.*))?"
)


def parse_limit(text: str, where: str, *, is_rule: bool = False) -> Limit:
    text = " ".join(text.split())
    match = _LIMIT.fullmatch(text)
    if match is None or (match["quoted"] and not match["training"]):
        hint = "write a limit such as 'idle_ratio <= 5%' or 'no thermal_throttle'"
        raise SettingsError(where, f"{text!r} is not a limit", hint, code="not_a_limit")
    no, of, training, quoted, name, statistic, relation, amount = match.groups(default="")
    name = name or quoted
    if no and relation:
        raise SettingsError(where, f"{text!r} has both 'no' and an amount", "use only one of them", code="not_a_limit")
    if not (training or statistic or name in FIGURES) and name.rpartition(".")[0] in FIGURES:
        name, _, statistic = name.rpartition(".")
    subject, units = _find_figure(of, name, where, is_named=bool(training), is_bounded=bool(relation))
    statistic = _find_statistic(name, statistic, where, subject, units)
    if relation:
        threshold = _read_amount(amount, name, where, subject, units)
    elif FINDINGS in units:
        # without an amount, no findings are allowed
        threshold = Quantity(value=0.0, unit=FINDINGS)
    else:
        raise SettingsError(where, f"{name} needs an amount", f"add <= {_EXAMPLES[units[0]]}", code="no_amount")
    written = f'"{name}"' if quoted else name
    bound = f"{relation} {threshold.text}" if relation else ""
    words = " ".join(filter(None, ("" if relation else "no", of, training, written, statistic, bound)))
    limit = Limit(subject, name, statistic, relation or "<=", threshold, words)
    _refuse_idle_limit(limit, where)
    is_low = (subject in {Subject.GPU_TIME, Subject.FINDING} and name in _LOW) or name == "idle_ratio"
    if is_rule and is_low and relation.startswith(">"):
        hint = f"a rule states what must hold: write '{words.replace(relation, '<=')}'"
        raise SettingsError(where, f"{words!r} lets only bad runs pass", hint, code="inverted_limit")
    return limit


def _find_figure(of: str, name: str, where: str, *, is_named: bool, is_bounded: bool) -> Allowed:
    is_change, metric = of == "change", recognise_metric(name)
    # a loss, an error or an accuracy needs no `training` before it, unless it looks like a misspelt known name
    is_slip = name in FIGURES or get_close_matches(name, FIGURES, 1, _NEAR)
    is_quality = metric is not None and metric.role in QUALITY_ROLES and not is_slip
    if is_bounded and of != "new" and (is_named or is_quality):
        return (Subject.CHANGE, (NUMBER, SHARE, POINTS)) if is_change else (Subject.TRAINING, (NUMBER, SHARE))
    if is_change and not is_named and name in BY_METRIC:
        unit = BY_METRIC[name].unit
        return Subject.CHANGE, (POINTS,) if unit == SHARE else (SHARE, unit)
    if is_change or is_named or name not in FIGURES:
        what = f"changes in {name!r} are not measured" if is_change else f"unknown name {name!r}"
        raise SettingsError(where, what, _suggest_name(name, is_change=is_change), code="unknown_limit_name")
    if of == "new" and FIGURES[name][0] is not Subject.FINDING:
        raise SettingsError(where, f"{name} is not a finding", "leave out 'new'", code="unknown_kind")
    return (Subject.NEW, (FINDINGS,)) if of == "new" else FIGURES[name]


def _suggest_name(name: str, *, is_change: bool) -> str:
    if found := get_close_matches(name, BY_METRIC if is_change else FIGURES, n=1, cutoff=_CLOSE):
        return f"did you mean {found[0]!r}?"
    if is_change:
        return f"for a slower job, use gpu_seconds_per_1000_work; changes are measured only in {', '.join(BY_METRIC)}"
    # users may write a word from a kind's title, such as `overheating`
    titles = {kind.name: re.findall(r"\w{4,}", kind.title.lower()) for kind in KINDS.values()}
    if kinds := [kind for kind, words in titles.items() if any(word in name.lower() for word in words)][:_SUGGESTED]:
        return f"did you mean {' or '.join(map(repr, kinds))}? (gpureport explain lists all checks)"
    return (
        "use a metric, a kind of finding, a severity, a class of GPU time, a figure, or a training metric as "
        "'training NAME' (see docs/how-to/gates.md)"
    )


def _find_statistic(name: str, written: str, where: str, subject: Subject, units: tuple[str, ...]) -> str:
    known: tuple[str, ...] = (FINAL, BEST) if NUMBER in units else ()
    if subject is Subject.STATISTIC:
        known = (*STATISTICS, *(BELOW if name == "gpu_utilization_ratio" else ()))
    if written and written not in known:
        hint = f"choose from {', '.join(known)}" if known else "leave out the second word"
        raise SettingsError(where, f"{name} has no statistic {written!r}", hint, code="unknown_statistic")
    return written or next(iter(known), "")


def _read_amount(text: str, name: str, where: str, subject: Subject, units: tuple[str, ...]) -> Quantity:
    threshold = parse_quantity(text)
    if threshold is None:
        hint = f"write {_EXAMPLES[units[0]]}"
        raise SettingsError(where, f"{text.strip()!r} is not an amount", hint, code="not_an_amount")
    plain = next((unit for unit in (FINDINGS, NUMBER) if unit in units), None if {*units} & _SCALED else units[-1])
    if threshold.unit == COUNT and plain is not None:
        threshold = Quantity(value=threshold.value, unit=plain, text=threshold.text)
    if threshold.unit not in units:
        what, hint = f"{name} cannot be compared with {text.strip()!r}", " or ".join(map(_EXAMPLES.__getitem__, units))
        raise SettingsError(where, what, f"write {hint}", code="wrong_unit")
    if subject is Subject.CHANGE and threshold.value == 0:
        hint = "give the smallest change that matters"
        raise SettingsError(where, f"a change of 0 in {name} is always within the noise", hint, code="no_amount")
    return threshold


def _refuse_idle_limit(limit: Limit, where: str) -> None:
    name, relation, value, is_share = limit.name, limit.relation, limit.threshold.value, limit.threshold.unit == SHARE
    metric = recognise_metric(name) if limit.statistic and limit.subject is Subject.TRAINING else None
    is_rate = metric is not None and metric.role not in QUALITY_ROLES
    if limit.subject is Subject.TRAINING and limit.statistic:
        # a reward may be negative, and a rate is not a share
        is_idle = is_share and (value < 0 or is_rate)
    elif relation.startswith(">"):
        is_idle = limit.threshold.unit != "Cel" and (value < 0 or (value == 0 and relation == ">="))
    else:
        may_exceed_one = name in BY_NAME and BY_NAME[name].may_exceed_one
        is_idle = is_share and (value > 1 or (value == 1 and relation == "<=")) and not may_exceed_one
    if is_idle and limit.subject is not Subject.CHANGE:
        bound = f"{relation} {limit.threshold.text}"
        figure = TRAINING_RATE if is_rate else f"training {name}" if metric else name
        change = f"'change {figure} {bound}' limits the change since the baseline"
        hint = change if value < 0 or is_rate else "choose a limit that a run can break"
        raise SettingsError(where, f"{name} {bound} cannot fail", hint, code="cannot_fail")

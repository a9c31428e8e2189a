"""Names of kinds, classes of GPU time, columns and figures, and definitions of terms."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from gpureport.analysis.account.gpu_time import FAR_SECONDS, OUTSIDE, UNKNOWN
from gpureport.analysis.rules import RULES
from gpureport.comparison.figures import WORK_BATCH
from gpureport.findings import CheckOutcome
from gpureport.metrics import BY_NAME, METRICS
from gpureport.report.wording.display import lower_first
from gpureport.report.wording.scales import name_work

_WORDS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
DESCRIPTIONS = {kind.name: kind for rule in RULES for kind in rule.descriptions}
KINDS = {name: kind.title for name, kind in DESCRIPTIONS.items()}
CAUSES = {cause: title for kind in DESCRIPTIONS.values() for cause, title in kind.cause_titles.items()}
CLASSES = _WORDS["classes"]  # name of each class of GPU time
TIME_CAUSES = {name: kind.gpu_time_part for name, kind in DESCRIPTIONS.items() if kind.gpu_time_part} | {
    UNKNOWN: "cause unknown",
    OUTSIDE: "outside the job",
}
"""Names of causes within a class of GPU time. Other causes are printed unchanged."""
DEFINITIONS = tuple(
    (name, text.replace("{far}", f"{FAR_SECONDS / 60:g}")) for name, text in _WORDS["definitions"].items()
)
FIGURE_NAMES = _WORDS["figures"]
"""Names of run figures in column order. `{per}` is replaced by the result of `per_batch`."""
OUTCOME_WORDS = {outcome: outcome.value for outcome in CheckOutcome} | {
    CheckOutcome.BROKEN: "failed",
    CheckOutcome.CANNOT_JUDGE: "not assessed",
}
"""Printed outcomes of rules. JSON and JUnit types keep their old names."""
PER_RUN = "per run"  # unit of figures without known work
_FIELDS = [metric.recorded_by for metric in METRICS]
_RECORDED = {metric.recorded_by: metric.name for metric in METRICS if _FIELDS.count(metric.recorded_by) == 1}
_SUFFIX = re.compile(r"_(?:ratio|bytes_per_second|bytes|watts|celsius|hertz|seconds_total|seconds|total)$")
_BATCH = f"{WORK_BATCH:,} "
_PLURALS = {"ches": "ch", "shes": "sh", "sses": "ss", "xes": "x", "ies": "y", "ss": "ss", "us": "us", "s": ""}


def class_title(key: str, causes: Iterable[str] = ()) -> str:
    title = CLASSES.get(key) or _WORDS["fleet"].get(key, key.replace("_", " ").capitalize())
    by_cause = {_WORDS["slowed"].get(cause, title) for cause in causes} if key == "throttled" else set()
    return by_cause.pop() if len(by_cause) == 1 else title


def kind_title(name: str, cause: str | None = None) -> str:
    return CAUSES.get(cause or "") or KINDS.get(name, name.replace("_", " ").capitalize())


def humanize(text: str) -> str:

    def name(match: re.Match[str]) -> str:
        word = match.group()
        return lower_first(KINDS[word]) if word in KINDS else column_title(word) if word in BY_NAME else word

    named = re.sub(r"\b[a-z]+_[a-z_]+\b", name, text)
    return named[:1].upper() + named[1:]


def column_title(name: str) -> str:
    name = _RECORDED.get(name, name)
    if name in _WORDS["columns"]:
        return _WORDS["columns"][name]
    if name in FIGURE_NAMES and name not in BY_NAME:
        return lower_first(name_figure(name))
    bare = _SUFFIX.sub("", name) if name in BY_NAME else name
    return bare.replace("_", " ").replace("gpu ", "GPU ").replace("cpu ", "CPU ").replace("pcie ", "PCIe ")


def per_batch(unit: str | None) -> str:
    return f"per {_BATCH}{name_work(unit)}"


def name_figure(metric: str, per: str = "") -> str:
    return FIGURE_NAMES[metric].format(per=per or per_batch(None))


def name_one(unit: str) -> str:
    ending = next((ending for ending in _PLURALS if unit.endswith(ending)), "")
    return f"{unit.removesuffix(ending)}{_PLURALS[ending]}" if ending else unit


def name_for_one(title: str) -> str:
    """Return the name of a figure per unit of work, for percentage changes."""
    before, _, unit = title.rpartition(_BATCH)
    noun, _, rest = unit.partition(" ")
    return f"{before}{name_one(noun)}{rest and f' {rest}'}" if before and name_one(noun) != noun else title

"""What `gpureport explain` says of a class of GPU time."""

from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES
from gpureport.analysis.rulebook import kinds_by_gpu_time_class
from gpureport.analysis.rules import RULES
from gpureport.report.model.shapes import Explanation, Fact, Section
from gpureport.report.wording import terms

KINDS_BY_CLASS = kinds_by_gpu_time_class(RULES)
"""Kinds of findings whose time a class holds."""


def find_class(name: str) -> str | None:
    """Return the class of a name: its key, or what reports call it; None for others."""
    word = _word(name)
    return next((key for key in GPU_TIME_CLASSES if word in {_word(key), _word(terms.CLASSES[key])}), None)


def explain_class(key: str) -> Explanation:
    """Return what a class holds, whether it counts as lost, and which kinds of findings tell more."""
    meaning = dict(terms.DEFINITIONS)[terms.CLASSES[key]]
    apart = {"no_samples": "as not known", "no_job": "in no share: shares are of the time of jobs"}
    counted = "as lost" if key in LOST_CLASSES else apart.get(key, "not as lost")
    facts = [Fact(name="Counted", text=counted)]
    if key in KINDS_BY_CLASS:
        facts.append(Fact(name="Findings", text=", ".join(KINDS_BY_CLASS[key])))
    return Explanation(
        title=f"{key}: {terms.CLASSES[key]}",
        sections=(
            Section(title="", paragraphs=(meaning,)),
            Section(title="Class of GPU time", facts=tuple(facts)),
        ),
    )


def _word(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")

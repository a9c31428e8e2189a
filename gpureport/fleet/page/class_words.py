"""What classes of GPU time and labels are called on the page of many runs."""

from collections.abc import Iterable

from gpureport.analysis.results import LOST_CLASSES
from gpureport.fleet.fleet_report import ClassTime
from gpureport.label_tags import BY_NAME
from gpureport.report.sections.head.loss_sentence import LOSSES
from gpureport.report.wording import display, terms

NO_LOSS = "nothing lost"
OTHER_LOSSES = "other"
"""Key of the segment that all losses but the largest share; no class has this key, so its fill is the common one."""

_NAME = 64
"""Most characters of a name that is not ours."""


def sort_losses(classes: Iterable[ClassTime]) -> list[ClassTime]:
    """Return the classes that count as lost, the one with most time first."""
    lost = [each for each in classes if each.name in LOST_CLASSES and each.gpu_seconds > 0]
    return sorted(lost, key=lambda each: -each.gpu_seconds)


def name_loss(key: str) -> str:
    """Return what a class of GPU time is called within a sentence."""
    return LOSSES.get(key, "slowed clocks" if key == "throttled" else key.replace("_", " "))


def name_largest_loss(loss: ClassTime | None) -> str:
    """Return the class that lost most, as a cell says it."""
    return NO_LOSS if loss is None else terms.class_title(loss.name)


def name_label(label: str) -> str:
    """Return what a label is called: `User`."""
    return BY_NAME[label].title if label in BY_NAME else shorten_name(label)


def shorten_name(name: str) -> str:
    """Return a name of a run, person or machine: cleaned, and cut in its middle if long."""
    return display.shorten_middle(display.clean(name), _NAME)

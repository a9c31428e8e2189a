"""How much the GPUs of a step worked, in words, where that is little."""

from collections.abc import Sequence

from gpureport.analysis.results import Analysis
from gpureport.analysis.signals.low_use import BELOW
from gpureport.comparison.steps.step_figures import below_ratios, utilisation
from gpureport.report.runs import gpu_time
from gpureport.report.sections.findings import loss_wording
from gpureport.report.wording import display, terms

_PAUSES = "short_pauses"


def is_low(analyses: Sequence[Analysis]) -> bool:
    """Return whether the mean utilisation of all runs is lower than what calls for no change."""
    mean = utilisation(analyses)
    return mean is not None and mean < BELOW.value


def work_done(analyses: Sequence[Analysis]) -> str:
    """Return the beginning of a sentence: how much the GPUs worked; empty where that was not recorded."""
    mean = utilisation(analyses)
    several = max(len(analysis.run.gpus) for analysis in analyses) > 1
    return "" if mean is None else f"The {'GPUs' if several else 'GPU'} worked {display.percent(mean)} of the time"


def levels_sentence(analyses: Sequence[Analysis]) -> str:
    """Return the mean utilisation of whole recordings, how long it was below some levels, and how much pauses took."""
    mean = utilisation(analyses)
    if mean is None:
        return ""
    below = [
        f"below {display.percent(limit)} for {display.percent(part)}" for limit, part in below_ratios(analyses).items()
    ]
    below[:1] = [f"{text} of the time" for text in below[:1]]
    held, seconds = (
        gpu_time.job_gpu_seconds(analyses),
        gpu_time.seconds_by_class(t for each in analyses for t in each.gpu_time),
    )
    pauses = seconds.get(_PAUSES, 0.0) / held if held else 0.0
    took = f"; {terms.CLASSES[_PAUSES]} took {display.percent(pauses)}" if pauses >= loss_wording.NOTHING else ""
    runs = f"{len(analyses)} whole runs" if len(analyses) > 1 else "the whole run"
    return f"Mean utilisation of {runs}: {display.percent(mean)}. It was {display.join_words(below)}{took}."

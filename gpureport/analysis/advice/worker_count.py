"""How many loader workers to try, by what a run says of its workers, its cores and how busy its GPUs are.

Doubling is a step whose effect shows in one run (pragmatic). Where workers, cores and the use of the GPU are known,
the number is that at which a loader, whose speed grows with its workers, would keep the GPU busy: w workers that keep
it busy for the share u need w / u. Loading in the main process takes turns with the GPU: one worker for each time that
loading takes as long as computing, (1 - u) / u. A worker a core is the most, unless the job hardly uses the CPU: its
workers wait for storage or a network, and more of them than cores wait side by side. No gain is promised: what the GPU
waits for may be something else.
"""

from math import ceil

from gpureport.analysis import phrases
from gpureport.analysis.advice.run_facts import UTILISATION, RunFacts
from gpureport.analysis.signals import load
from gpureport.analysis.signals.load import LOW_USE_KINDS, CoreCount
from gpureport.findings import Finding

DOUBLE = "Double their number, to at most one a core."
"""What to try where nothing is known."""
_DOUBLE_FREELY = "Double their number: the job hardly uses the CPU, so they can outnumber its cores."
_OUTNUMBER = ", and workers that hardly use the CPU can outnumber its cores"
ONE_MORE = "Add one at a time."
"""What to try where no number is suggested."""
_WAITS = (*load.WAIT_KINDS, *LOW_USE_KINDS, "workers_headroom")
"""Kinds whose time the GPU may wait for a loader throughout."""
_MOST_TIMES = 4
"""Times as many workers as before that are suggested at most where cores are no limit (pragmatic)."""
_FEWEST = 2
"""Workers to begin with where loading runs in the main process and nothing more is known."""
_LEAST_GAIN = 1.05  # less prints as 1.0 times as much data
"""Times as much data that a GPU must be able to take for a number to be suggested."""
_ROUND = 6
"""Digits behind the point up to which a quotient is not rounded up: 21 / 0.7 is a little over 30 in floating point."""


def suggest_workers(facts: RunFacts, finding: Finding | None = None) -> str:
    """Return how many workers to try in each process, and why, in a sentence; to double them where nothing is known.

    It is empty where the GPU can hardly take more data. More workers must not be ruled out by one a core already.

    Args:
        facts: what the run tells.
        finding: the finding that they are advised for; None where the whole run is little used.
    """
    cores = load.count_cores(facts.setup, facts.gpus_a_machine)
    setting = facts.setup.workers
    if setting is None or setting.value == float("inf"):
        return _DOUBLE_FREELY if facts.job_hardly_uses_cpu else _double_up_to(cores)
    now = round(setting.value)
    doubled = 2 * now or _FEWEST
    if cores is None:
        limit = _OUTNUMBER if facts.job_hardly_uses_cpu else ", but no more than one a core"
        return f"Try {doubled} instead of {now}{limit}."
    most = max(cores.most_workers, _MOST_TIMES * max(now, 1)) if facts.job_hardly_uses_cpu else cores.most_workers
    used = _find_use(facts, finding)
    if used is None:
        tried = min(doubled, most)
        return f"Try {tried} instead of {now}{_OUTNUMBER if tried > cores.most_workers else ''}."
    if 1 / used < _LEAST_GAIN:
        return ""
    wanted = ceil(round(now / used if now else (1 - used) / used, _ROUND))
    tried = min(wanted, most)
    why = f"at {phrases.percent(used)} busy, the GPU can take {_format_times(1 / used)} as much data at most"
    if tried > cores.most_workers:
        return f"Try {tried} instead of {now}: {why}{_OUTNUMBER}."
    limit = ", one a core" if wanted > tried else ""
    return f"Try {tried} instead of {now}{limit}: {why}."


def _find_use(facts: RunFacts, finding: Finding | None) -> float | None:
    """Return how busy the GPUs were where a loader may have held them back; None where that is not known."""
    if finding is None:
        return facts.gpu_used or None
    if finding.kind not in _WAITS:
        return None
    measured = (one.observed for one in finding.evidence if (one.metric, one.statistic) == (UTILISATION, "mean"))
    return next(measured, facts.gpu_used) or None


def _double_up_to(cores: CoreCount | None) -> str:
    if cores is None:
        return DOUBLE
    each = "" if cores.gpus == 1 else " for each GPU"
    return f"Double their number, to at most {cores.most_workers}{each}: {cores.words}."


def _format_times(ratio: float) -> str:
    return f"{ratio:.1f} times" if round(ratio, 1) < 10 else f"{ratio:.0f} times"  # noqa: PLR2004 - three figures are too many

"""How many loader workers to try, by what a run says of its workers, its cores and how busy its GPUs are.

Doubling is a step whose effect shows in one run (pragmatic). Where workers, cores and the use of the GPU are known,
the number is that at which a loader, whose speed grows with its workers, would keep the GPU busy: w workers that keep
it busy for the share u need w / u. Loading in the main process takes turns with the GPU: one worker for each time that
loading takes as long as computing, (1 - u) / u. A worker a core is the most, except where the job was seen to use less
than half a core: workers that wait for storage or the network do not compete for cores. No gain is promised: what the
GPU waits for may be something else.
"""

from math import ceil

from gpureport.analysis.advice.run_facts import UTILISATION, RunFacts
from gpureport.analysis.rules import phrases
from gpureport.analysis.signals import core_count
from gpureport.analysis.signals.core_count import CoreCount
from gpureport.analysis.signals.low_use import LOW_USE_KINDS
from gpureport.analysis.signals.waits import waiting_gpus
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Finding

DOUBLE = "Double their number, to at most one a core."
"""What to try where nothing is known."""
DOUBLE_FREELY = "Double their number, again while it helps: {why}."
"""What to try where nothing is known but that the job hardly uses the CPU."""
MORE_THAN_CORES = "more than one a core is fine, since the job hardly uses the CPU"
"""Why cores are no limit."""
ONE_MORE = "Add one at a time."
"""What to try where no number is suggested."""
_WAITS = (*waiting_gpus.WAIT_KINDS, *LOW_USE_KINDS, "workers_headroom")
"""Kinds whose time the GPU may wait for a loader throughout."""
_FEWEST = 2
"""Workers to begin with where loading runs in the main process and nothing more is known."""
_LEAST_GAIN = pragmatic(1.05, "1", "less prints as 1.0 times as much data")
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
    cores = core_count.count_cores(facts.setup, facts.gpus_a_machine)
    setting = facts.setup.workers
    if setting is None or setting.value == float("inf"):
        return DOUBLE_FREELY.format(why=MORE_THAN_CORES) if facts.job_hardly_uses_cpu else _double_up_to(cores)
    now = round(setting.value)
    doubled = 2 * now or _FEWEST
    if cores is None:
        end = f"; {MORE_THAN_CORES}" if facts.job_hardly_uses_cpu else ", but no more than one a core"
        return f"Try {doubled} instead of {now}{end}."
    used = _find_use(facts, finding)
    if used is None:
        return f"Try {_describe_number(doubled, now, cores, facts)}."
    if 1 / used < _LEAST_GAIN.value:
        return ""
    wanted = ceil(round(now / used if now else (1 - used) / used, _ROUND))
    limit = ", one a core" if wanted > cores.most_workers and not facts.job_hardly_uses_cpu else ""
    why = f"at {phrases.percent(used)} busy, the GPU can take {_format_times(1 / used)} as much data at most"
    return f"Try {_describe_number(wanted, now, cores, facts, f'{limit}: {why}')}."


def _describe_number(wanted: int, now: int, cores: CoreCount, facts: RunFacts, why: str = "") -> str:
    """Return how many to try instead of how many, and why: one a core at most, unless the job hardly uses the CPU."""
    if wanted <= cores.most_workers or not facts.job_hardly_uses_cpu:
        return f"{min(wanted, cores.most_workers)} instead of {now}{why}"
    return f"{wanted} instead of {now}{why}; {MORE_THAN_CORES}"


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

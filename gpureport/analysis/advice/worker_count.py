"""How many loader workers to try, by what a run says of its workers, its cores and how busy its GPUs are.

Doubling is a step whose effect shows in one run (pragmatic). Where workers, cores and the use of the GPU are known,
the number is that at which a loader, whose speed grows with its workers, would keep the GPU busy: w workers that keep
it busy for the share u need w / u. Loading in the main process takes turns with the GPU: one worker for each time that
loading takes as long as computing, (1 - u) / u. A worker a core is the most in any case: PyTorch warns of more
(PyTorch documentation, torch.utils.data). No gain is promised: what the GPU waits for may be something else.
"""

from math import ceil, floor

from gpureport.analysis.advice.run_facts import UTILISATION, RunFacts
from gpureport.analysis.rules import phrases
from gpureport.analysis.signals import core_count, waiting_gpus
from gpureport.analysis.signals.core_count import CoreCount
from gpureport.analysis.signals.low_use import LOW_USE_KINDS
from gpureport.findings import Finding

DOUBLE = "Double their number."
"""What to try where nothing is known."""
_WAITS = (*waiting_gpus.WAIT_KINDS, *LOW_USE_KINDS, "workers_headroom")
"""Kinds whose time the GPU may wait for a loader throughout."""
_FEWEST = 2
"""Workers to begin with where loading runs in the main process and nothing more is known."""


def suggest_workers(facts: RunFacts, finding: Finding | None = None) -> str:
    """Return how many workers to try in each process, and why, in a sentence; to double them where nothing is known.

    Args:
        facts: what the run tells.
        finding: the finding that they are advised for; None where the whole run is little used.
    """
    cores = core_count.count_cores(facts.setup, facts.gpus_a_machine)
    most = None if cores is None else max(floor(cores.cores / cores.gpus), 1)
    setting = facts.setup.workers
    if setting is None or setting.value == float("inf"):
        return _double_up_to(cores, most)
    now = round(setting.value)
    if most is not None and now >= most and cores is not None:
        return f"Add one at a time: {cores.words}, so there is one for each of the {now} workers already."
    used = _find_use(facts, finding)
    if used is None or most is None:
        return f"Try {min(max(2 * now, _FEWEST), most or 2 * now or _FEWEST)} instead of {now}."
    wanted = max(ceil(now / used) if now else ceil((1 - used) / used), now + 1)
    why = f"at {phrases.percent(used)} busy, the GPU can take {_format_times(1 / used)} as much data at most"
    if wanted <= most:
        return f"Try {wanted} instead of {now}: {why}."
    return f"Try {most} instead of {now}, one a core: {why}."


def _find_use(facts: RunFacts, finding: Finding | None) -> float | None:
    """Return how busy the GPUs were where a loader may have held them back; None where that is not known."""
    if finding is None:
        return facts.gpu_used or None
    if finding.kind not in _WAITS:
        return None
    measured = (one.observed for one in finding.evidence if (one.metric, one.statistic) == (UTILISATION, "mean"))
    return next(measured, facts.gpu_used) or None


def _double_up_to(cores: CoreCount | None, most: int | None) -> str:
    if cores is None or most is None:
        return DOUBLE
    each = "" if cores.gpus == 1 else " for each GPU"
    return f"Double their number, to at most {most}{each}: {cores.words}."


def _format_times(ratio: float) -> str:
    return f"{ratio:.1f} times" if round(ratio, 1) < 10 else f"{ratio:.0f} times"  # noqa: PLR2004 - three figures are too many

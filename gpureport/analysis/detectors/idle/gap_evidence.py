"""Evidence on idle gaps: how low utilisation and power were."""

from dataclasses import replace

from gpureport.analysis.detectors.idle import busy_peers
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.findings import Evidence, Threshold


def build_gap_level_evidence(mean: float, still: Threshold) -> Evidence:
    """Return the mean utilisation of a gap; without the limit of single samples if bridged kernels raise it."""
    level = compare_with_limit(UTILISATION, "mean", mean, "<=", still)
    return level if level.meets_limit else replace(level.as_context(), statistic="mean, short kernels included")


def build_power_evidence(run: IdleRun, resting: Threshold) -> tuple[Evidence, ...]:
    """Return the power of a gap if only its power rules out an accident of sampling, else nothing."""
    if run.highest_power is None or run.samples >= run.needed:
        return ()
    drawn = compare_with_limit(
        busy_peers.POWER, "highest of the gap, from rest (0) to work (1)", run.highest_power, "<=", resting
    )
    return (drawn,)

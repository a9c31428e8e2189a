"""Evidence on idle gaps: how low utilisation and power were."""

from gpureport.analysis.detectors.idle import gap_causes
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.findings import Evidence, Threshold


def build_level_evidence(mean: float, still: Threshold) -> Evidence:
    """Return the mean utilisation of a gap; without the limit of single samples if bridged kernels raise it."""
    low = mean <= still.value
    return Evidence(
        metric=UTILISATION,
        statistic="mean" if low else "mean, short kernels included",
        observed=mean,
        unit="1",
        threshold=still if low else None,
        relation="<=" if low else "",
    )


def build_power_evidence(run: IdleRun, resting: Threshold) -> tuple[Evidence, ...]:
    """Return the power of a gap if only its power rules out an accident of sampling, else nothing."""
    if run.highest_power is None or run.samples >= run.needed:
        return ()
    drawn = compare_with_limit(
        gap_causes.POWER, "highest of the gap, from rest (0) to work (1)", run.highest_power, "<=", resting
    )
    return (drawn,)


def build_sparse_evidence(between: float, limit: Threshold) -> Evidence:
    """Return how little a GPU worked between its gaps, against a limit."""
    return compare_with_limit(UTILISATION, "mean between the gaps of this GPU", between, "<", limit)

"""Measured values set against a limit of a rule."""

from gpureport.findings import Evidence, Threshold


def compare_with_limit(metric: str, statistic: str, observed: float, relation: str, limit: Threshold) -> Evidence:
    """Return a value, in the unit of the limit, beside the limit that made it count."""
    return Evidence(
        metric=metric, statistic=statistic, observed=observed, unit=limit.unit, threshold=limit, relation=relation
    )

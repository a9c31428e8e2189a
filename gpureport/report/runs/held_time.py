"""The stretches of findings without the time in which no job held a GPU, which no figure counts."""

from gpureport.analysis.job.phases import NO_JOB
from gpureport.analysis.results import Analysis
from gpureport.analysis.series import intervals
from gpureport.findings import Finding, Interval


def list_held_stretches(analysis: Analysis, finding: Finding) -> tuple[Interval, ...]:
    """Return the stretches of a finding in which a job held any of its GPUs; all where the finding is that none did."""
    devices = finding.devices or tuple(gpu.id for gpu in analysis.run.gpus)
    if finding.cause == NO_JOB or not all(device in analysis.no_job for device in devices):
        return finding.intervals
    whole = intervals.to_spans(finding.intervals)
    free = whole
    for device in devices:
        free = intervals.intersection(free, intervals.to_spans(analysis.no_job[device]))
    return intervals.to_intervals(intervals.difference(whole, free))

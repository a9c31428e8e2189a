"""Headlines on GPU time in which no work was done, and on time of which nothing is known."""

from gpureport.analysis.job.phases import LITTLE_WORK, NO_WORK, UTILISATION
from gpureport.report.runs.gpu_time import name_whole
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts, format_length
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_range

_CAUSES = {
    "checkpoint": "while the host writes to disk",
    "io": "while the host reads from storage",
    "peers busy": "while the others work",
    "hang": "while the others wait for it",
    "unknown": "the log doesn't show why",
}
"""What the evidence of a gap says of its cause."""


def write_idle_gap(facts: FindingFacts) -> str:
    """Return how much of the job GPUs were idle, and why where the evidence tells."""
    shares = facts.gap_shares
    how_long = (
        format_length(facts.seconds) if shares is None else f"{format_range(shares[0], display.percent)} {shares[1]}"
    )
    why = _CAUSES.get(facts.cause, "")
    joined = f"; {why}" if facts.cause == "unknown" else f" {why}" if why else ""
    return f"{facts.gpus} {facts.verb('sits', 'sit')} idle for {how_long}{joined}."


def write_periodic_stall(facts: FindingFacts) -> str:
    """Return how often GPUs stall, for how long, and what it takes of the job."""
    period = facts.format_observed("period", format_length)
    idle = facts.format_observed("idle time", format_length, "mean")
    share = facts.format_observed("idle time", display.percent, "share of the job")
    often = f" every {period}" if period else " again and again"
    length = f" for {idle}" if idle else ""
    part = f": {share} of the job" if share else ""
    return f"{facts.gpus} {facts.verb('stalls', 'stall')}{often}{length}{part}."


def write_slow_start(facts: FindingFacts) -> str:
    """Return how long the first work took to come; of a job that never worked, that."""
    if facts.cause == NO_WORK:
        return f"{facts.gpus} {facts.verb('does', 'do')} no sustained work in {format_length(facts.seconds)}."
    mean = facts.observed(UTILISATION, "mean")
    if facts.cause == LITTLE_WORK and mean is not None:
        length = format_length(facts.seconds)
        return f"{facts.gpus} {facts.verb('works', 'work')} only a little: {display.percent(mean)} busy in {length}."
    share = facts.observed("duration", "share of the")
    part = f", {display.percent(share)} of {name_whole([facts.group.run])}" if share is not None else ""
    return f"The first work comes after {format_length(facts.seconds)}{part}."


def write_idle_end(facts: FindingFacts) -> str:
    """Return how long GPUs were kept after the last work, of each job where there are several."""
    concerns_all = set(facts.group.devices) in (set(), {gpu.id for gpu in facts.group.run.run.gpus})
    whole = f"{facts.verb('its', 'their')} time" if concerns_all else "the GPU time"
    part = f", {display.percent(facts.share)} of {whole}" if facts.share else ""
    jobs, length = len(facts.group.findings), format_length(facts.seconds)
    if jobs > 1:
        return f"{jobs} jobs keep {facts.gpus} {length} after their work{part}."
    return f"{facts.gpus} {facts.verb('idles', 'idle')} {length} after the last work{part}."


def write_unused_gpu(facts: FindingFacts) -> str:
    """Return that GPUs never work, and how much of the GPU time that is."""
    part = f": {display.percent(facts.share)} of the GPU time goes unused" if facts.share else ""
    return f"{facts.gpus} never {facts.verb('works', 'work')}{part}."


def write_log_gap(facts: FindingFacts) -> str:
    """Return how much of the log is missing."""
    missing = facts.observed("time without samples") or facts.seconds
    whole = facts.group.run.seconds
    part = f", {display.percent(missing / whole)} of the run" if whole else ""
    return f"{format_length(missing)} of the log is missing{part}."


def write_early_end(facts: FindingFacts) -> str:
    """Return how long the log of GPUs ends before what goes on."""
    length = facts.observed("time without samples at the end", "length")
    other = next((each.metric for each in facts.finding.evidence if each.statistic == "goes on for"), "the rest")
    whose = f"The log of {facts.gpus}" if other.startswith("GPU ") else "The GPU log"
    before = f"that of {other}" if other.startswith("GPU ") else other
    return f"{whose} stops {format_length(length or facts.seconds)} before {before}."


def write_no_progress(facts: FindingFacts) -> str:
    """Return for how much of the job a training metric got no better."""
    share = facts.observed("time after the best value")
    metric = next((each.metric for each in facts.finding.evidence if each.statistic == "best"), "")
    part = f"the last {display.percent(share)} of the job" if share is not None else format_length(facts.seconds)
    name = display.shorten_middle(display.clean(metric), 28) or "the training metric"
    return f"No progress: {name} doesn't improve in {part}."


MAKERS = {
    "idle_gap": write_idle_gap,
    "periodic_stall": write_periodic_stall,
    "startup_idle": write_slow_start,
    "tail_idle": write_idle_end,
    "unused_gpu": write_unused_gpu,
    "log_gap": write_log_gap,
    "monitoring_ended": write_early_end,
    "no_progress": write_no_progress,
}
"""What writes the headline of each kind."""

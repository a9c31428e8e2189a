"""Words of the report: what kinds, classes of GPU time and columns are called, and what terms mean."""

import re

from gpureport.analysis.detectors import RULES
from gpureport.analysis.engine import attribution
from gpureport.metrics import BY_NAME, METRICS

DESCRIPTIONS = {kind.name: kind for rule in RULES for kind in rule.descriptions}
"""What the rule of each kind says of it."""

KINDS = {name: kind.title for name, kind in DESCRIPTIONS.items()}
"""Title of each kind."""

CAUSES = {cause: title for kind in DESCRIPTIONS.values() for cause, title in kind.cause_titles}
"""Title of causes that say more than their kind."""

CLASSES = {
    "computing": "computing",
    "short_pauses": "short pauses",
    "hollow": "busy with little work",
    "low_use": "low use",
    "throttled": "lost to throttling",
    "waiting_for_input": "waiting for input",
    "idle": "idle",
    "unused": "GPU never used",
    "startup": "start-up",
    "tail": "after the work",
    "gpu_lost": "GPU lost",
    "no_samples": "not recorded",
    "no_job": "no job",
}
"""What each class of GPU time is called."""

TIME_CAUSES = {name: kind.gpu_time_part for name, kind in DESCRIPTIONS.items() if kind.gpu_time_part} | {
    attribution.UNKNOWN: "cause unknown",
    attribution.OUTSIDE: "at rest outside the job",
}
"""What a part of a class of GPU time is called; a cause without an entry is its own name."""

ALWAYS_LOSING_KINDS = {name for name, kind in DESCRIPTIONS.items() if kind.always_loses_time}
"""Kinds that always lose GPU time: where no amount is given it is unknown, rather than none."""

_COLUMNS = {
    "gpu_utilization_ratio": "GPU utilisation",
    "gpu_memory_controller_ratio": "memory controller",
    "gpu_memory_used_bytes": "GPU memory used",
    "gpu_memory_total_bytes": "GPU memory installed",
    "gpu_power_watts": "power",
    "gpu_power_limit_watts": "power limit",
    "gpu_temperature_celsius": "temperature",
    "gpu_memory_temperature_celsius": "memory temperature",
    "gpu_sm_clock_hertz": "SM clock",
    "cpu_utilization_ratio": "CPU utilisation",
    "cpu_busiest_core_ratio": "busiest CPU core",
    "cpu_iowait_ratio": "CPU waiting for I/O",
    "host_memory_used_bytes": "host memory used",
}
_FAR_MINUTES = attribution.FAR_SECONDS / 60
_FIELDS = [metric.recorded_by for metric in METRICS]
_RECORDED = {metric.recorded_by: metric.name for metric in METRICS if _FIELDS.count(metric.recorded_by) == 1}
_SUFFIXES = (
    "_ratio",
    "_bytes_per_second",
    "_bytes",
    "_watts",
    "_celsius",
    "_hertz",
    "_seconds_total",
    "_seconds",
    "_total",
)


def kind_title(name: str, cause: str | None = None) -> str:
    """Return the title of a kind, or of its cause where that has one; an unknown kind is spelled out."""
    if cause in CAUSES:
        return CAUSES[cause]
    return KINDS.get(name, name.replace("_", " ").capitalize())


def humanize(text: str) -> str:
    """Return a sentence with columns and kinds by the names people use, beginning with a capital."""
    named = re.sub(r"\b[a-z]+_[a-z_]+\b", lambda match: _title_of_word(match.group()), text)
    return named[:1].upper() + named[1:]


def _title_of_word(word: str) -> str:
    """Return a column or a kind within a sentence by its name, any other word as it is."""
    if word in KINDS:
        title = KINDS[word]
        return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"
    return column_title(word) if word in BY_NAME else word


def column_title(name: str) -> str:
    """Return what a column, the field it is recorded by, or a quantity in words is called in prose."""
    name = _RECORDED.get(name, name)
    if name in _COLUMNS:
        return _COLUMNS[name]
    bare = name
    if name in BY_NAME:
        suffix = next((end for end in _SUFFIXES if name.endswith(end)), "")
        bare = name.removesuffix(suffix)
    return bare.replace("_", " ").replace("gpu ", "GPU ").replace("cpu ", "CPU ").replace("pcie ", "PCIe ")


def _term(name: str, *sentences: str) -> tuple[str, str]:
    return name, " ".join(sentences)


DEFINITIONS = (
    _term(
        "GPU utilisation",
        "Share of a short window before each reading in which at least one kernel ran.",
        "It says that the GPU was occupied, not how much of it was used.",
    ),
    _term(
        "GPU-hour",
        "One GPU held for one hour, whether it computed or not:",
        "time from the first to the last sample of the run, times the number of GPUs,",
        "less the time in which no job held them.",
    ),
    _term(
        "Idle",
        "Time with a GPU utilisation of 5% or less.",
        "Stretches without samples are never counted as idle.",
    ),
    _term("Idle share", "Idle time divided by the time that samples cover, start-up and end included."),
    _term(
        "GPU-hours lost",
        "Every GPU-second falls into exactly one class.",
        "Lost are the classes idle, GPU never used, waiting for input, start-up, after the work and GPU lost;",
        "lost to throttling, the part of slowed time by which the work took longer;",
        "busy with little work, the share of such time that was lost by its power;",
        "and low use, the unused share of stretches that were found to be used too little.",
        "Not all of it can be won back.",
    ),
    _term(
        "Lost time of a finding",
        "The most GPU time that removing its cause could give back.",
        "What follows from another finding is shown beneath it; on the same GPUs its time is part of that one's.",
        "Other findings can overlap too, so these figures must not be added up.",
    ),
    _term(
        "Time-weighted mean",
        "Each sample counts for the stretch of time it stands for; stretches without samples count for nothing.",
    ),
    _term(
        "Short pauses",
        "The share of busy samples in which no kernel ran (1 - utilisation), outside everything that was found.",
        "Pauses too short to be placed; some are part of any training step, so they are not counted as lost.",
    ),
    _term("Computing", "Busy time outside everything that was found."),
    _term("Busy with little work", "The GPU reads busy, but its power or its own counters say that little was done."),
    _term(
        "Low use",
        "The unused share of stretches that were found to be used too little, for no cause that was recorded.",
        f"Samples over {_FAR_MINUTES:g} min apart do not tell short pauses from long ones: theirs counts too.",
    ),
    _term("Lost to throttling", "The part of time with a reduced clock by which the work took longer."),
    _term("Waiting for input", "Time in which the GPU waited for the CPU, for storage or for copies."),
    _term("GPU never used", "All time of a GPU on which no work was seen."),
    _term("GPU lost", "Time after a GPU no longer answered, until it did again or the run ended."),
    _term("Start-up", "Idle time before the first sustained work."),
    _term("After the work", "Idle time after the last work, until the recording ended."),
    _term(
        "No job",
        "Time after a job in which no process held the GPU: its memory was empty and it was at rest.",
        "It counts neither as idle nor as lost, and no share or mean includes it.",
    ),
    _term("SM clock", "Clock of the multiprocessors, which set the speed of computing."),
    _term("Temperature", "Of the GPU's core; memory has one of its own."),
    _term("Power", "What the board draws, at the moment of the reading or averaged over about a second, by model."),
    _term("Energy", "Power integrated over the time of samples; counted: what the driver's own counter rose by."),
    _term("Peak memory", "The most GPU memory that was in use at a reading; between readings it can have been more."),
    _term("Memory free at peak", "Share of the GPU's memory that was never in use at a reading."),
    _term("Open findings", "Findings of the last step that are more than information and follow from no other."),
    _term(
        "Interval",
        "Range that holds the true value in 95 of 100 cases like this one.",
        "Too few samples give none.",
    ),
    _term(
        "Verdict",
        "Better or worse: repetitions show it. Unconfirmed: one run each shows it, and a repeat may not.",
        "No clear change: none, or one too small for these recordings. Not enough data: the reason is given.",
    ),
    _term("Since first", "The same against the first step, not against the row above."),
    _term(
        "Answer",
        "Found; suspected (with low confidence); judged, nothing found; or cannot judge: what it needs was not",
        "recorded, which says nothing about whether it is there.",
    ),
    _term(
        "Origin",
        "Where a limit comes from. Vendor: as the maker states it. Literature: a published source.",
        "Pragmatic: chosen for what is worth a change. Settings: set by you.",
    ),
    _term("Coverage", "Share of the time from first to last sample of each GPU that is not in a log gap."),
    _term("Not recorded", "GPU time without samples, or with samples that hold no utilisation."),
    _term(
        "Severity",
        "Problem: GPU time or data is being lost and something can be done.",
        "Warning: worth a look. Info: a fact about the run.",
    ),
    _term(
        "Confidence",
        "High: a column says so directly. Medium: inferred from several columns or few samples.",
        "Low: the sampling is coarse, or a value had to come from a table.",
    ),
)
"""Terms and their meaning."""

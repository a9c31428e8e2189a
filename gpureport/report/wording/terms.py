"""Words of the report: what kinds, classes of GPU time and columns are called, and what terms mean."""

import re
from collections.abc import Iterable

from gpureport.analysis.account.gpu_time import FAR_SECONDS, OUTSIDE, UNKNOWN
from gpureport.analysis.rules import RULES
from gpureport.metrics import BY_NAME, METRICS
from gpureport.report.wording.display import lower_first
from gpureport.report.wording.figure_names import FIGURE_NAMES, name_figure

DESCRIPTIONS = {kind.name: kind for rule in RULES for kind in rule.descriptions}
"""What the rule of each kind says of it."""

KINDS = {name: kind.title for name, kind in DESCRIPTIONS.items()}
"""Title of each kind."""

CAUSES = {cause: title for kind in DESCRIPTIONS.values() for cause, title in kind.cause_titles.items()}
"""Title of causes that say more than their kind."""

CLASSES = {
    "computing": "Computing",
    "short_pauses": "Short pauses",
    "hollow": "Busy, low power",
    "low_use": "Low use",
    "throttled": "Slowed by heat or hardware",
    "waiting_for_input": "Waiting for data",
    "idle": "Idle",
    "unused": "Unused GPU",
    "startup": "Start-up",
    "tail": "After the work",
    "gpu_lost": "GPU lost",
    "no_samples": "No data",
    "no_job": "No job",
}
"""What each class of GPU time is called."""

SLOWED = {"heat": "Slowed by heat", "power brake": "Slowed by hardware", "hardware": "Slowed by hardware"}
"""What slowed time is called if all of it has one cause."""

TIME_CAUSES = {name: kind.gpu_time_part for name, kind in DESCRIPTIONS.items() if kind.gpu_time_part} | {
    UNKNOWN: "cause unknown",
    OUTSIDE: "outside the job",
}
"""What a part of a class of GPU time is called; a cause without an entry is its own name."""

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
    "host_memory_used_ratio": "share of host memory used",
}
_FAR_MINUTES = FAR_SECONDS / 60
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


def class_title(key: str, causes: Iterable[str] = ()) -> str:
    """Return what a class of GPU time is called; slowed time by its cause, where it has only one."""
    if key == "throttled":
        by_cause = {SLOWED.get(cause, CLASSES[key]) for cause in causes}
        return by_cause.pop() if len(by_cause) == 1 else CLASSES[key]
    return CLASSES.get(key, key.replace("_", " ").capitalize())


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
        return lower_first(KINDS[word])
    return column_title(word) if word in BY_NAME else word


def column_title(name: str) -> str:
    """Return what a column, the field it is recorded by, or a quantity in words is called in prose."""
    name = _RECORDED.get(name, name)
    if name in _COLUMNS:
        return _COLUMNS[name]
    if name in FIGURE_NAMES and name not in BY_NAME:
        return lower_first(name_figure(name))
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
        "Share of a short time before each reading in which at least one kernel ran.",
        "It says that the GPU was busy, not how much of it was used.",
    ),
    _term(
        "GPU-hour",
        "One GPU for one hour, whether it computed or not.",
        "The time from the first to the last sample, times the number of GPUs, without the time in which no job ran.",
    ),
    _term(
        "GPU time",
        "The time that jobs held GPUs, whether they computed or not: its units are GPU-seconds, -minutes and -hours.",
    ),
    _term(
        "Idle",
        "As a class of GPU time: idle gaps, and rest before, after or without lasting work.",
    ),
    _term("Use up to 5%", "In tables of GPUs and stages: the idle share."),
    _term(
        "Idle share",
        "Time at a utilisation of 5% or less, as a share of the time with samples, start-up and end included.",
        "A gap in the log never counts.",
    ),
    _term(
        "GPU time lost",
        "Every GPU-second belongs to exactly one class.",
        "These count as lost: idle, unused GPU, waiting for data, start-up, after the work and GPU lost;",
        "of slowed time, by how much the work took longer;",
        "of busy time at low power, the share of work that its power shows to be missing;",
        "and of low use, the unused share.",
        "Not all of it can be won back.",
    ),
    _term(
        "Lost time of a finding",
        "The most GPU time that fixing it could give back.",
        "A finding that follows from another is shown beneath it, and shares its time on the same GPUs.",
        "Findings can overlap, so do not add these figures up.",
    ),
    _term("Time-weighted mean", "Each sample counts for the time it stands for. Gaps in the log count for nothing."),
    _term(
        "Short pauses",
        "The part of busy time in which no kernel ran (1 - utilisation), outside every finding.",
        "Such pauses are too short to be seen one by one. Every training has some, so they do not count as lost.",
    ),
    _term("Computing", "Busy time outside every finding."),
    _term("Busy, low power", "The GPU looked busy, but its power or its own counters show that it did little."),
    _term(
        "Low use",
        "The unused share of time with low utilisation for which the log shows no cause.",
        f"Samples more than {_FAR_MINUTES:g} min apart cannot tell short pauses from long ones: theirs count too.",
    ),
    _term("Slowed by heat or hardware", "By how much longer the work took because the clock was lowered."),
    _term("Waiting for data", "The GPU waited for the CPU, for storage or for copies."),
    _term("Unused GPU", "All time of a GPU that never worked."),
    _term("GPU lost", "The GPU no longer responded, until it did again or the run ended."),
    _term("Start-up", "Idle time before the first lasting work."),
    _term("After the work", "Idle time after the last work, until the log ends."),
    _term(
        "No job",
        "The GPU idled with empty memory after a job: no process used it.",
        "This counts neither as idle nor as lost, and no share or mean includes it.",
    ),
    _term("SM clock", "Clock of the multiprocessors. It sets the speed of computing."),
    _term("Temperature", "Temperature of the GPU core; the memory has its own."),
    _term("Power", "What the board draws: at the moment of the reading, or averaged over about a second."),
    _term("Energy", "Power added up over the time with samples. Counted: as the driver's own counter shows."),
    _term("Peak memory", "The most GPU memory in use at any reading. Between readings it may have been more."),
    _term("Memory free at peak", "Share of the GPU memory that was never in use at a reading."),
    _term("Open findings", "Problems and warnings of the last step that follow from no other finding."),
    _term("Interval", "Range that holds the true value in 95 of 100 cases like this one. Too few samples give none."),
    _term(
        "Verdict",
        "Better or worse: repeated runs show it. Unconfirmed: one run each shows it, and a repeat may not.",
        "No clear change: the runs show none, or one too small to matter. Not enough data: the reason is given.",
    ),
    _term("Since first", "Compared with the first step, not with the row above."),
    _term(
        "Answer",
        "Found; suspected, with low confidence; nothing found; or not assessed:",
        "the log lacks what the check needs, so it may be there or not.",
    ),
    _term(
        "Origin",
        "Where a threshold comes from. Vendor: the maker states it. Literature: a published source.",
        "Pragmatic: chosen for what is worth a change. Settings: you set it.",
    ),
    _term("Coverage", "Share of the time from the first to the last sample of each GPU that has no gap in the log."),
    _term("No data", "GPU time without samples, or whose samples hold no utilisation."),
    _term(
        "Severity",
        "Problem: GPU time or data is lost, and you can change it. Warning: worth a look. Info: good to know.",
    ),
    _term(
        "Confidence",
        "High: a reading says so directly. Medium: inferred from several readings, or from few.",
        "Low: samples lie far apart, or a value had to come from a table.",
    ),
)
"""Terms and their meaning."""

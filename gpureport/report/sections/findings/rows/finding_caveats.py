"""What to keep in mind with a finding, in sentences: its limits with their origin, what was ruled out, and doubts."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.signals.load import BESIDE_OTHERS
from gpureport.findings import Confidence, Evidence, Finding, Provenance
from gpureport.report.sections.findings.rows.row_groups import RowGroup
from gpureport.report.wording import display, terms

_RELATIONS = {">=": "counts from {} on", ">": "counts above {}", "<=": "counts up to {}", "<": "counts below {}"}
_ORIGINS = {
    Provenance.VENDOR: "From the maker: {}.",
    Provenance.LITERATURE: "From published work: {}.",
    Provenance.SETTINGS: "From your settings: {}.",
    Provenance.PRAGMATIC: "{}.",
}
_WAITS = {
    "length": "Only waits over {} count: shorter ones are usual.",
    "share": "Under {} of a run: a note, not a warning.",
}
_SHORTEST = "{} under {} in all are not counted."
_SLOWDOWNS = {"thermal_throttle", "hw_throttle"}
_HEAT_LIMIT = "Heat slows this GPU from {} on."
"""Of the limit of a slowed GPU: it is the driver's, whether the GPU was hotter or the driver itself told of heat."""
_REPORTED = ": nvidia-smi"
"""What follows the name of a GPU in an origin, where nvidia-smi itself tells the limit."""

_TEMPERATURE = "gpu_temperature_celsius"
_EDGES = {"startup_idle", "tail_idle"}
_COARSE_SECONDS = 2.0
"""Time between samples from which a sample a second would tell more."""

_TIMED = {
    *("startup_idle", "tail_idle", "idle_gap", "periodic_stall", "thermal_throttle", "hw_throttle", "hollow_util"),
    *("imbalance", "unused_gpu", "power_cap"),
}
"""Kinds whose times a sample a second would tell better."""

_TO_BE_SURE = {
    "cpu_bound": "trace some steps with a profiler",
    "cpu_bound_single": "trace some steps with a profiler",
    "io_bound": "trace some steps with a profiler",
    "transfer_bound": "trace some steps with a profiler",
    "underutilised": "trace some steps with a profiler",
    "low_util_cause_unknown": "record the CPU beside the GPU",
    "periodic_stall": "note when the job saves and evaluates",
    "mem_headroom": "run once with preallocation off",
    "mem_prealloc": "run once with preallocation off",
    "oversized_gpu": "try the job on the smaller GPU",
    "workers_headroom": "add a worker and measure",
    "zombie_memory": "list the processes on the GPU at the end of the job",
    "hollow_util": "log DCGM's activity counters",
    "host_memory_pressure": "watch the page cache (free -m) while GPUs wait",
    "no_progress": "evaluate more often",
}


def list_caveats(group: RowGroup) -> tuple[str, ...]:
    """Return the caveats of findings of one kind and cause, each once."""
    worst = group.worst.worst
    sentences = [*_list_limits(group), *_list_ruled_out(worst), *_list_doubts(group)]
    return tuple(dict.fromkeys(sentences))


def _list_limits(group: RowGroup) -> Iterator[str]:
    for entry in group.worst.worst.evidence:
        if entry.threshold is not None:
            yield _describe_limit(group.kind, entry)


def _describe_limit(kind: str, entry: Evidence) -> str:
    threshold = entry.threshold
    if threshold is None:
        return ""
    limit = display.quantity(threshold.value, threshold.unit)
    special = next((text for start, text in _WAITS.items() if entry.statistic.startswith(start)), "")
    if kind in _EDGES and special:
        return special.format(limit)
    if kind in _SLOWDOWNS and entry.statistic == "total":
        return _SHORTEST.format("Slowdowns", limit)
    words = (terms.column_title(display.clean(entry.metric)), display.clean(entry.statistic))
    quantity = ", ".join(word for word in words if word)
    relation = _RELATIONS.get(entry.relation, "is held against {}").format(limit)
    first = f"{quantity[:1].upper()}{quantity[1:]}{',' if all(words) else ''} {relation}."
    if kind in _SLOWDOWNS and entry.metric == _TEMPERATURE:
        first = _HEAT_LIMIT.format(limit)
    source = display.clean_sentence(threshold.source).rstrip(".")
    gpu, _, rest = source.partition(_REPORTED)
    is_named = source.startswith("published")
    why = f"{source}." if is_named else _ORIGINS[threshold.provenance].format(source)
    if rest and threshold.provenance is Provenance.VENDOR:
        _, _, how = rest.partition("users: ")
        why = f"The limit is the one nvidia-smi reports for the {gpu}{f', as {how}' if how else ''}."
    return f"{first} {why[:1].upper()}{why[1:]}"


def _list_ruled_out(finding: Finding) -> Iterator[str]:
    for reason in finding.ruled_out:
        yield f"Not {display.lower_first(display.clean_sentence(reason).rstrip('.'))}."


def _list_doubts(group: RowGroup) -> Iterator[str]:
    if group.confidence is Confidence.HIGH:
        return
    record = what_to_record(group)
    why = f"to be sure, {record}" if record else "it is inferred from several columns or few samples"
    yield f"Confidence {group.confidence.value}: {why}."
    if group.kind == "cpu_bound_single":
        yield "A thread that spins while it waits for the GPU looks the same."


def what_to_record(group: RowGroup) -> str:
    """Return what would settle a doubt, as words to follow; empty where nothing is known to."""
    if group.cause == BESIDE_OTHERS:
        return "measure without other programs"
    coarse = any((run.run.interval or 0.0) > _COARSE_SECONDS for run in group.runs.values())
    return "record a sample a second" if coarse and group.kind in _TIMED else _TO_BE_SURE.get(group.kind, "")


def list_relations(roots: Sequence[str], followers: Sequence[str]) -> Iterator[str]:
    """Yield which rows a row follows from, and which follow from it, by their titles."""
    if roots:
        yield f"It follows from: {display.join_words(list(roots))}."
    if followers:
        yield f"It explains: {display.join_words(list(followers))}."

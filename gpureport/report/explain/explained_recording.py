"""What to log so that every question can be answered, put together from what the rules need."""

from collections.abc import Sequence

from gpureport.analysis.rules.missing_metrics import query_command
from gpureport.analysis.rules.rule import Rule
from gpureport.importers.devices.gpu_identity import ATTRIBUTES
from gpureport.metrics import COUNTED_CLOCK_EVENTS, METRICS, Metric, Scope
from gpureport.report.explain.host_logger import PROGRAM
from gpureport.report.model.shapes import Explanation, Fact, Section

SYSSTAT = "sar -u -r -b -P ALL 1 > host.txt"
"""What logs the machine without a program of one's own: in local time, as nvidia-smi does."""
GPM = "nvidia-smi dmon --gpm-metrics 2,3,5,10 -o DT > gpm.log"
"""What logs how much of a GPU works without DCGM, on Hopper and newer: multiprocessors, tensor cores, memory."""
DCGM = "dcgmi dmon -e 203,155,150,140,252,1002,1004,1005 -d 1000 > dcgm.txt"
"""What logs utilisation, power, temperatures and memory, and what DCGM counts besides."""
_LEFT_OUT = {"serial"}
"""Attributes that add nothing to the others."""

_COUNTERS = {f"clock_event_{reason}_seconds_total" for reason in COUNTED_CLOCK_EVENTS}
_ADVICE = {
    "Interval": "One second. utilization.gpu speaks of the last second at most, so at 5 s a row is a spot check.",
    "Finer": "-lms 200 instead of -l 1 shows shorter pauses. Utilisation is renewed about five times a second at most, "
    "so a finer log is longer and tells nothing more.",
    "Which GPU": "Keep index and uuid: without either, rows of several GPUs cannot be told apart, and an index alone "
    "can stand for another GPU after a restart.",
    "Time": "Stamps are local time without a zone: give it with --tz, or log on a machine set to UTC, which has no "
    "hour twice in autumn. Log GPUs and machine on the same clock.",
    "-f": "overwrites an existing file without asking: name a new one for every run.",
    "The end": "Lines are written in blocks, so a logger that is killed loses the last ones: stop it with Ctrl-C or "
    "kill -INT, never kill -9.",
    "Units": "Keep the header and the units (neither noheader nor nounits): without the header the columns "
    "must be named with --columns.",
    "Old drivers": "Where the log holds nothing but 'Field ... is not a valid field to query', leave that field out. "
    "Before R530 clocks_event_reasons.active is called clocks_throttle_reasons.active.",
}


def list_used_metrics(rules: Sequence[Rule]) -> tuple[Metric, ...]:
    """Return the metrics that any rule needs or can use, in the order of METRICS."""
    names = {name for rule in rules for group in (*rule.requires, rule.wants) for name in group}
    return tuple(metric for metric in METRICS if metric.name in names)


def gpu_command(rules: Sequence[Rule], *, newest: bool = False) -> str:
    """Return the nvidia-smi command that logs what the rules ask of a GPU, and what tells GPUs apart.

    Args:
        rules: the rules.
        newest: whether to log fields that only newer drivers have.
    """
    metrics = (metric for metric in list_used_metrics(rules) if metric.queried)
    fields = [metric.recorded_by for metric in metrics if newest or metric.name not in _COUNTERS]
    return query_command([*(field for field in reversed(ATTRIBUTES) if field not in _LEFT_OUT), *dict.fromkeys(fields)])


def explain_recording(rules: Sequence[Rule]) -> Explanation:
    """Return the commands to run beside a job, and what to mind."""
    return Explanation(
        title="Recording: start both loggers before the job, stop them after it",
        sections=(
            Section(title="The GPUs", code=(gpu_command(rules),)),
            Section(
                title="The same on drivers of R580 and newer",
                code=(gpu_command(rules, newest=True),),
                paragraphs=("The driver counts the time a clock was held down: nothing is lost between two rows.",),
            ),
            Section(
                title="The machine",
                code=("python host.py > host.csv",),
                paragraphs=("Without the load of the processor nobody can tell why a GPU waits. It logs:",),
                facts=_facts(rules, "psutil"),
            ),
            Section(title="host.py, to be saved as a file (needs psutil)", code=tuple(PROGRAM.splitlines())),
            Section(
                title="Or, where sysstat is installed",
                code=(SYSSTAT,),
                paragraphs=("It logs the same and the disks besides; stop it with Ctrl-C.",),
                facts=_facts(rules, "sysstat"),
            ),
            Section(
                title="In place of the first, where DCGM is installed",
                code=(DCGM,),
                paragraphs=(
                    "It counts in the hardware what utilization.gpu cannot tell: how much of the GPU worked.",
                    "No time is in it: read it with --interval 1.",
                ),
                facts=_facts(rules, "dcgm"),
            ),
            Section(
                title="Without DCGM, on GPUs of Hopper and newer",
                code=(GPM,),
                paragraphs=("smutil, smocc, mmaact and dram are its SM, tensor and DRAM activity, once a second.",),
            ),
            Section(
                title="Besides, where copies to the GPU or one process are in question",
                code=("nvidia-smi dmon -s t -o DT > dmon.log", "pidstat -u -p PID 1 > process.txt"),
                facts=_facts(rules, ""),
            ),
            Section(title="Then", code=("gpureport analyze gpu.csv --host host.csv",)),
            Section(title="Mind", facts=tuple(Fact(name=name, text=text) for name, text in _ADVICE.items())),
        ),
    )


def _recorder(metric: Metric) -> str:
    """Return which of the recorders named here writes a metric, empty when it takes another."""
    if metric.queried:
        return "nvidia-smi"
    if metric.recorded_by.startswith("DCGM_"):
        return "dcgm"
    if metric.scope is Scope.HOST and "psutil" in metric.recorded_by:
        return "psutil"
    return "sysstat" if metric.recorded_by.startswith("sar ") else ""


def _facts(rules: Sequence[Rule], recorder: str) -> tuple[Fact, ...]:
    """Return the metrics that rules want of a recorder."""
    wants = (metric for metric in list_used_metrics(rules) if _recorder(metric) == recorder)
    return tuple(Fact(name=metric.recorded_by, text=metric.brief) for metric in wants)

"""What tests may use beside the public API: recordings made by hand, the types of results, and one call per stage.

A test of gpureport, or of what somebody adds to it, imports this package, `gpureport`, `gpureport.cli.main` and
`gpureport.errors`, and nothing else.
"""

from gpureport.analysis.results import (
    GPU_TIME_CLASSES,
    Analysis,
    ClockEventTotal,
    Cost,
    DeviceStatistics,
    MetricSummary,
)
from gpureport.api import analyze, compare
from gpureport.comparison.chain import Comparison
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.data_quality import AbsentCells, ClockStep, LogEvent, LogGap, Quality, Rejected
from gpureport.findings import AdvisedStep, Check, Confidence, Evidence, Finding, Interval, NotJudged, Severity
from gpureport.importers.protocol.reject_reasons import find_note_code, find_reject_code
from gpureport.recording import HOST, Device, Recording, Run, Source, Stage, Work
from gpureport.testing.recordings import (
    GIB,
    START,
    Floats,
    at,
    event,
    finding,
    findings_of,
    recording,
    spans,
    steps,
    unjudged,
    with_host,
    with_params,
    with_quality,
    with_training,
)
from gpureport.testing.stages import build_file, build_page, check, comparison_document, fault

__all__ = ["HOST", "Device", "Recording", "Run", "Source", "Stage", "Work"]
__all__ += ["AbsentCells", "ClockStep", "LogEvent", "LogGap", "Quality", "Rejected"]
__all__ += ["AdvisedStep", "Check", "Confidence", "Evidence", "Finding", "Interval", "NotJudged"]
__all__ += ["GPU_TIME_CLASSES", "Analysis", "ClockEventTotal", "Cost", "DeviceStatistics", "MetricSummary"]
__all__ += ["Comparison", "Delta", "Severity", "Verdict"]
__all__ += ["analyze", "build_file", "build_page", "check", "compare", "comparison_document", "fault"]
__all__ += ["GIB", "START", "Floats", "at", "event", "finding", "findings_of", "recording", "spans", "steps"]
__all__ += ["find_note_code", "find_reject_code"]
__all__ += ["unjudged", "with_host", "with_params", "with_quality", "with_training"]

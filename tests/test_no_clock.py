"""No test asserts how long something takes: what passes on one machine fails on a slower or a busier one."""

import re
from pathlib import Path

_TESTS = Path(__file__).parent
_CLOCKS = re.compile(
    r"\b(?:process_time|perf_counter|thread_time|monotonic)(?:_ns)?\b|\btimeit\b|\bmark\.timeout\b"
    r"|\bsignal\.alarm\b|\bsetitimer\b"
)
_ELSEWHERE = {
    Path("fuzz/__main__.py"): "stops after the seconds that are asked for",
    Path("fuzz/worker.py"): "as above",
    Path("fuzz/measuring.py"): "run by hand",
    Path("fuzz/recordings_by_hand.py"): "as above",
    Path("importers/trackers/mlflow/real.py"): "waits for a server to start",
    Path("patience.py"): "ends what would never end",
    Path("places/s3_server.py"): "as above",
    Path("recorder/recorded.py"): "waits for a recording to begin",
    Path("recorder/stand_in.py"): "plays a log in real time",
    Path("store/forking.py"): "times an ingest so that the next ones are killed halfway",
}
"""Files that may read a clock, and what for; none asserts what it shows."""


def test_no_test_reads_a_clock() -> None:
    """Times are measured by hand, as ratios, in tests/benchmarks."""
    files = {path.relative_to(_TESTS): path for path in _TESTS.rglob("*.py") if path != Path(__file__)}
    reading = {
        name
        for name, path in files.items()
        if name.parts[0] != "benchmarks" and _CLOCKS.search(path.read_text(encoding="utf-8"))
    }
    assert reading == set(_ELSEWHERE)

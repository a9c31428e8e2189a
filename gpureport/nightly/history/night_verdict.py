"""The verdict on nights as the history records them; the pages show no other."""

from collections.abc import Iterator, Sequence

from gpureport.checks.verdict import Verdict, build_missing_check
from gpureport.findings import Check
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun


def judge_nights(records: Sequence[NightlyRecord]) -> Verdict | None:
    """Return the verdict on all runs of some records, if any rule was set or data is missing."""
    checks = tuple(check for record in records for check in _list_checks(record))
    return Verdict(checks=checks) if checks else None


def judge_run(record: NightlyRecord, run: NightlyRun) -> Verdict | None:
    """Return the verdict on one run of a record; None where no rule was set and it has data."""
    checks = _checks_of_run(record, run) if run.run_id else [build_missing_check(run.name or run.source, run.reason)]
    return Verdict(checks=tuple(checks)) if checks else None


def _list_checks(record: NightlyRecord) -> Iterator[Check]:
    yield from (build_missing_check(run.name or run.source, run.reason) for run in record.missing_runs)
    yield from record.checks


def _checks_of_run(record: NightlyRecord, run: NightlyRun) -> list[Check]:
    """Return the checks of a run; those of a step or of no run are with its first run."""
    first = {other.step: other for other in reversed(record.measured_runs)}
    names = {other.name for other in record.measured_runs}
    steps = {other.step for other in record.measured_runs}
    return [
        check
        for check in record.checks
        if (check.run == run.name)
        or (
            check.run not in names
            and run is first.get(check.run if check.run in steps else record.measured_runs[0].step)
        )
    ]

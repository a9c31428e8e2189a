"""Summaries made by hand, whose sums are plain to see."""

from datetime import UTC, datetime

from gpureport.fleet.gpu_summary import FindingSummary, GpuHealth, GpuSummary
from gpureport.testing import Severity

HOUR = 3600.0


def read_time(text: str) -> int:
    """Return a time in microseconds: `2026-10-05T12:00`."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)


def make_gpu(  # noqa: PLR0913 - what tests vary
    run: str,
    *,
    hours: dict[str, float] | None = None,
    device: str | None = "gpu:0",
    uuid: str | None = None,
    node: str | None = None,
    model: str = "NVIDIA L4",
    started: str | None = "2026-10-05T12:00",
    ended: str | None = "2026-10-05T14:00",
    findings: tuple[FindingSummary, ...] = (),
    not_judged: tuple[str, ...] = (),
    health: GpuHealth | None = None,
    work: float | None = None,
    error: str = "",
    params: tuple[tuple[str, str], ...] = (),
    **tags: str,
) -> GpuSummary:
    """Return a summary; hours by class of GPU time, two hours of computing when not given."""
    return GpuSummary(
        key="key",
        run_id=run,
        run_name=tags.get("job_name", run),
        device=device,
        uuid=uuid,
        node=node,
        model=model,
        started=None if started is None else read_time(started),
        ended=None if ended is None else read_time(ended),
        seconds=tuple((name, amount * HOUR) for name, amount in (hours or {"computing": 2.0}).items()),
        findings=findings,
        not_judged=not_judged,
        health=health or GpuHealth(),
        work_amount=work,
        work_unit="steps" if work else None,
        params=params,
        tags=tuple(tags.items()),
        error=error,
    )


def make_finding(kind: str, hours: float | None, *steps: str, cause: str | None = None) -> FindingSummary:
    """Return a finding that lost some hours and asks for some steps."""
    return FindingSummary(
        kind=kind,
        cause=cause,
        severity=Severity.WARNING,
        count=1,
        lost_gpu_seconds=None if hours is None else hours * HOUR,
        fingerprint=kind,
        is_consequence=False,
        steps=steps,
    )

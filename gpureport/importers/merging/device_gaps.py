"""The time without samples of a device that several logs hold."""

from collections.abc import Iterator, Sequence

from gpureport.importers.merging.shared_devices import Span


def find_device_gaps(logs: Sequence[tuple[Span, Sequence[Span]]], limit: float) -> Iterator[Span]:
    """Yield the stretches in which no log has a sample.

    Args:
        logs: first and last sample of each log, and its gaps.
        limit: time between two logs above which it is a gap, in microseconds.
    """
    known = {gap for _, own in logs for gap in own}
    ended: int | None = None
    for start, end in sorted(piece for span, own in logs for piece in _sampled(span, own)):
        if ended is not None and start > ended and ((ended, start) in known or start - ended > limit):
            yield ended, start
        ended = end if ended is None else max(ended, end)


def _sampled(span: Span, gaps: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a log's time between its gaps."""
    bounds = [span[0], *(moment for gap in sorted(gaps) for moment in gap), span[1]]
    yield from zip(bounds[::2], bounds[1::2], strict=True)

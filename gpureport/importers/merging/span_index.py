"""Finds the spans that touch another one without looking at all of them."""

from bisect import bisect_left, bisect_right, insort
from math import inf

from gpureport.importers.merging.shared_devices import Span


class SpanIndex:
    """Spans of time, each with the place of what it is of. A search costs what it finds, however many there are.

    Spans are kept by the power of two above their length, since those of a length can begin only that much earlier.
    """

    def __init__(self) -> None:
        self._spans: dict[int, list[tuple[int, int, int]]] = {}

    def add(self, span: Span, place: int) -> None:
        """Add the span of a place; a place may have several."""
        start, end = span
        insort(self._spans.setdefault((end - start).bit_length(), []), (start, end, place))

    def find_touching(self, span: Span) -> set[int]:
        """Return the places with a span that shares at least one moment with this one."""
        start, end = span
        return {
            place
            for bits, spans in self._spans.items()
            for _, last, place in spans[bisect_left(spans, (start - (1 << bits),)) : bisect_right(spans, (end, inf))]
            if last >= start
        }

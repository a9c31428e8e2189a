"""Whether the times of several sources of one run can be compared: which are UTC, and which name no zone."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Input, Outcome, TrainingFile

_HOUR = 3_600_000_000
_WEST, _EAST = -12, 14
"""Hours that zones lie behind and ahead of UTC."""
_WHOLE = 0.9
"""Share of the shorter source that two are to have in common where several offsets would let them meet (pragmatic)."""
Span = tuple[int, int]


def check_time_bases(inputs: Sequence[Input | TrainingFile], outcomes: Sequence[Outcome], tz: str | None) -> None:
    """Make sure that times are all UTC, or all local times without a zone.

    Args:
        inputs: the sources.
        outcomes: what is known of each, in the same order.
        tz: zone of stamps that name none, None when unknown.

    Raises:
        SourceError: when some are UTC and others name no zone.
    """
    first, base = inputs[0], outcomes[0]
    if tz is not None or base.quality.synthetic_time:
        return
    for each, outcome in zip(inputs[1:], outcomes[1:], strict=True):
        if (outcome.timezone is None) == (base.timezone is None) or outcome.quality.synthetic_time:
            continue
        if outcome.timezone is not None:
            what = f"its times are {outcome.timezone}, those of {first.locator} name no zone"
            offset = _offset(base.span, outcome.span)
        else:
            what = f"its times name no zone, those of {first.locator} are {base.timezone}"
            offset = _offset(outcome.span, base.span)
        said = f"; their times meet where that is {offset}" if offset else ""
        raise SourceError(
            each.locator,
            what,
            f"give the zone of the other with --tz, such as Europe/Berlin{said}",
            code="times_not_comparable",
        )


def _offset(local: Span, utc: Span) -> str | None:
    """Return the only offset from UTC at which both spans meet; None where there is none or several."""
    for least in (0.0, _WHOLE):
        for halves in (False, True):
            found = [offset for offset in _offsets(halves=halves) if _shared(local, utc, offset) > least]
            if len(found) == 1:
                return _text(found[0])
            if found:
                break
    return None


def _offsets(*, halves: bool) -> list[int]:
    """Return whole hours, or those and a half, in microseconds."""
    return [hours * _HOUR + halves * _HOUR // 2 for hours in range(_WEST, _EAST + 1 - halves)]


def _shared(local: Span, utc: Span, offset: int) -> float:
    """Return the share of the shorter one that two have in common, where local times lie an offset ahead of UTC."""
    start, end = (time - offset for time in local)
    shorter = max(min(end - start, utc[1] - utc[0]), 1)
    return (min(end, utc[1]) - max(start, utc[0]) + 1) / shorter


def _text(offset: int) -> str:
    minutes = abs(offset) // (_HOUR // 60)
    return f"UTC{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" if offset else "UTC"


def format_span(span: Span) -> str:
    """Return the first and last time of a source, in its own zone or in UTC."""
    start, end = (datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S") for at in span)
    return f"{start} to {end}"


def describe_time_zones(
    inputs: Sequence[Input | TrainingFile], outcomes: Sequence[Outcome], tz: str | None
) -> tuple[str, ...]:
    """Return which zone each source states, where any of several does."""
    if len(inputs) < 2 or all(outcome.timezone is None for outcome in outcomes):  # noqa: PLR2004 - one source needs no word
        return ()
    local = "names no zone" if tz is None else f"names none, read as {tz}"
    said = [
        f"{each.locator} {local if outcome.timezone is None else f'states {outcome.timezone}'}"
        for each, outcome in zip(inputs, outcomes, strict=True)
    ]
    return (f"Zones of the time stamps: {'; '.join(said)}.",)

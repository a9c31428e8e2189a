"""Events of the log in words, numbered for the timeline, the lists and the terminal."""

from collections.abc import Callable, Sequence

from gpureport.data_quality import LogEvent
from gpureport.report.model.pictures import LogEventLine
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

_NAMES = {
    "gpu_lost": "GPU lost",
    "driver_restart": "driver restarted",
    "no_devices": "no GPU found",
    "driver_message": "message of the driver",
}
_MAX_LISTED = 20
"""Events that are listed; the JSON has them all."""
_TEXT, _PAIR = 160, 2


def list_events(run: ReportRun) -> tuple[LogEventLine, ...]:
    """Return the listed events of a run in the order of the log; of too many, driver messages are left out."""
    entries = run.run.quality.log_events
    places = sorted(range(len(entries)), key=lambda place: (entries[place].kind == "driver_message", place))
    return tuple(_describe(count, run, entries[place]) for count, place in enumerate(sorted(places[:_MAX_LISTED]), 1))


def describe_omitted(run: ReportRun) -> str:
    """Return how many events are not listed, in words; empty when all are."""
    more = len(run.run.quality.log_events) - _MAX_LISTED
    return f"{display.plural(more, 'more event')}; the JSON of analyze lists all." if more > 0 else ""


def _describe(place: int, run: ReportRun, entry: LogEvent) -> LogEventLine:
    at = None if entry.at is None else min(max(run.since_start(entry.at), 0.0), run.seconds)
    name = _NAMES.get(entry.kind, display.clean(entry.kind.replace("_", " ")))
    device = "" if entry.device is None else run.device(entry.device)
    text = display.shorten(display.clean(entry.text), _TEXT)
    when = "time not known" if at is None else display.elapsed(at)
    said = f"{name}{f' ({device})' if device else ''}{f': {text}' if text else ''}"
    return LogEventLine(
        id=f"E{place}",
        at=at,
        when=when,
        name=name,
        device=device,
        text=text,
        line=f"line {entry.line}",
        sentence=f"E{place}, {when}, {said} (line {entry.line})",
    )


def group_close_events(
    events: Sequence[LogEventLine], apart: Callable[[Sequence[LogEventLine]], float]
) -> list[list[LogEventLine]]:
    """Return the timed events in order of time, grouped where they are too close to be distinguished.

    `apart` is how many seconds the next event must be away from the first of those that stand together.
    """
    groups: list[list[LogEventLine]] = []
    timed = [(event.at, event) for event in events if event.at is not None]
    for at, event in sorted(timed, key=lambda each: each[0]):
        if groups and at < (groups[-1][0].at or 0.0) + apart(groups[-1]):
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def format_numbers(group: Sequence[LogEventLine]) -> str:
    """Return the numbers of events that stand together: `E2`, `E2 E3`, `E2-E7`."""
    places = sorted(int(event.id[1:]) for event in group)
    if len(places) > _PAIR and places[-1] - places[0] == len(places) - 1:
        return f"E{places[0]}\N{EN DASH}E{places[-1]}"
    return " ".join(f"E{place}" for place in places[:_PAIR]) + (" …" if len(places) > _PAIR else "")

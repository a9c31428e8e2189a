"""The latest night: what changed, what is missing, and what cannot be compared yet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpureport.nightly.changes.change_detection import FEWEST
from gpureport.nightly.changes.change_events import ChangeEvent, group_changes
from gpureport.nightly.changes.trend import Trend, build_trends
from gpureport.nightly.history.capture import name_models
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.recording import Run

_VERDICTS = ("worse", "changed", "better")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestNight:
    """The latest night of a history.

    Attributes:
        date: the night; empty if none is recorded.
        records: its records; parallel jobs write one each.
        groups: step and GPUs of its runs, each once.
        new_events: events that this night first shows: the latest of each group, the worse ones first; then those that
            a later one has overtaken.
        standing_events: changes for the worse that an earlier night showed and that still hold, the earliest first.
        unrecorded: figures that its runs no longer record.
        nights_needed: groups with too few nights, and how many more each needs.
    """

    date: str
    records: tuple[NightlyRecord, ...]
    groups: tuple[tuple[str, str], ...]
    new_events: tuple[ChangeEvent, ...]
    standing_events: tuple[ChangeEvent, ...]
    unrecorded: tuple[Trend, ...]
    nights_needed: tuple[tuple[tuple[str, str], int], ...]

    @property
    def missing_runs(self) -> tuple[NightlyRun, ...]:
        """Its sources without data."""
        return tuple(run for night in self.records for run in night.missing_runs)

    def is_overtaken(self, event: ChangeEvent) -> bool:
        """Return whether a later new event of the same group tells how the job is now."""
        return any(other.group == event.group and other.date > event.date for other in self.new_events)


def summarize_latest_night(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], accepted: Sequence[Run] = ()
) -> LatestNight:
    """Summarize the latest night.

    Args:
        nights: all nights, the oldest first.
        trends: the course of every figure.
        accepted: the runs of baselines; a change that one of them shows no longer stands.
    """
    date = nights[-1].date if nights else ""
    own = tuple(night for night in nights if night.date == date)
    groups = sorted({(run.step, run.model) for night in own for run in night.measured_runs})
    needed = {
        group: min((trend.nights_needed for trend in trends if trend.group == group), default=FEWEST)
        for group in groups
    }
    events = group_changes(trends)
    new = [event for event in events if event.is_new]
    latest = {event.group: event.date for event in new}
    new.sort(key=lambda event: (event.date < latest[event.group], _VERDICTS.index(event.verdict)))
    return LatestNight(
        date=date,
        records=own,
        groups=tuple(groups),
        new_events=tuple(new),
        standing_events=tuple(
            event
            for event in events
            if event.group in groups and event.verdict == "worse" and not (event.is_new or event.is_undone)
            if not any(_is_accepted(event, run) for run in accepted)
        ),
        unrecorded=tuple(trend for trend in trends if trend.is_no_longer_recorded),
        nights_needed=tuple((group, count) for group, count in needed.items() if count),
    )


def _is_accepted(event: ChangeEvent, run: Run) -> bool:
    """Return whether a run of a baseline is of the same job, and was recorded since a change."""
    step, model = event.group
    trend, change = event.changes[0]
    shown = trend.recorded_points[change.shift.place].runs
    is_newer = all(each.started is not None and run.started >= each.started for each in shown)
    return run.step in {step, None} and name_models(run) == model and is_newer


def list_followed_groups(nights: Sequence[NightlyRecord], latest: LatestNight) -> list[tuple[str, str]]:
    """Return the groups of the latest night; where it lacks a run, also those of the night before."""
    groups = list(latest.groups)
    dates = [night.date for night in nights if night.measured_runs and night.date < latest.date]
    if latest.missing_runs and dates:
        before = {(run.step, run.model) for night in nights if night.date == dates[-1] for run in night.measured_runs}
        groups += sorted(before.difference(groups))
    return groups


def summarize_record(
    record: NightlyRecord, nights: Sequence[NightlyRecord], accepted: Sequence[Run] = ()
) -> LatestNight:
    """Summarize what one call recorded, without later nights and without other calls of its night.

    Args:
        record: what the call recorded.
        nights: all nights, the oldest first.
        accepted: the runs of baselines.
    """
    until = [night for night in nights if night.date <= record.date]
    night = summarize_latest_night(until, build_trends(until), accepted)
    groups = tuple(sorted({(run.step, run.model) for run in record.measured_runs}))
    return replace(
        night,
        records=(record,),
        groups=groups,
        new_events=tuple(event for event in night.new_events if event.group in groups),
        standing_events=tuple(event for event in night.standing_events if event.group in groups),
        unrecorded=tuple(trend for trend in night.unrecorded if trend.group in groups),
        nights_needed=tuple((group, count) for group, count in night.nights_needed if group in groups),
    )

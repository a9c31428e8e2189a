"""The report on many runs without the names of people, projects, machines, jobs, runs and GPUs.

Names cannot be looked for in a text, so what may hold one is replaced as a whole.
"""

import re
from dataclasses import replace
from hashlib import sha256

from gpureport.fleet.fleet_report import (
    CardHealth,
    FailedRun,
    FleetReport,
    Group,
    Grouping,
    Overlap,
    RunName,
    RunUse,
    Saving,
)

_KEPT = frozenset(("model", "partition", "job_state"))
"""Labels whose values name nobody."""

_FILE = re.compile(r"[^\s:;,'\"()]*(?:[\\/@]|\.(?=[A-Za-z]))[^\s:;,'\"()]*")
"""A path, an address, or the name of a file."""

_SHOWN = 8


def anonymise_fleet_report(report: FleetReport) -> FleetReport:
    """Return the report with numbers or short hashes for names; times, amounts and models stay."""
    names = _Pseudonyms()
    # groupings first, so that numbers follow the order of losses
    return replace(
        report,
        selection="a selection of runs" if report.selection else "",
        groupings=tuple(map(names.replace_in_grouping, report.groupings)),
        worst_runs=tuple(map(names.replace_in_run, report.worst_runs)),
        pausing_runs=tuple(map(_hide_run, report.pausing_runs)),
        savings=tuple(map(names.replace_in_saving, report.savings)),
        health=replace(report.health, cards=tuple(map(names.replace_in_card, report.health.cards))),
        failed=tuple(map(_replace_in_failed_run, report.failed)),
        without_gpu=tuple(map(_hide_run, report.without_gpu)),
        overlaps=tuple(map(_replace_in_overlap, report.overlaps)),
    )


class _Pseudonyms:
    """Numbers the values of each label in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], str] = {}

    def hide(self, label: str, name: str | None) -> str | None:
        """Return the pseudonym of a value of a label; None for None."""
        if name is None or label in _KEPT:
            return name
        count = sum(known == label for known, _ in self._numbers)
        return self._numbers.setdefault((label, name), f"{label}_{count + 1}")

    def replace_in_grouping(self, by: Grouping) -> Grouping:
        """Return the runs by a label without its values."""

        def hide(group: Group) -> Group:
            return replace(group, name=self.hide(by.label, group.name))

        return replace(by, groups=tuple(map(hide, by.groups)))

    def replace_in_run(self, each: RunUse) -> RunUse:
        """Return a run without its name and its user."""
        return replace(each, run=_hide_run(each.run), user=self.hide("user", each.user))

    def replace_in_saving(self, saving: Saving) -> Saving:
        """Return a step without the names of its runs."""
        return replace(saving, examples=tuple(map(_hide_run, saving.examples)))

    def replace_in_card(self, card: CardHealth) -> CardHealth:
        """Return a GPU without its identity and its node."""
        symptoms = tuple(replace(each, runs=tuple(map(_hide_run, each.runs))) for each in card.symptoms)
        return replace(
            card,
            uuid=card.uuid and _hide_uuid(card.uuid),
            node=self.hide("node", card.node),
            device=card.device.rpartition("/")[2],
            symptoms=symptoms,
        )


def _hide_run(run: RunName) -> RunName:
    shown = _hash_identity(run.id)
    return RunName(id=shown, name=f"run-{shown}")


def _hide_uuid(uuid: str) -> str:
    return f"GPU-{_hash_identity(uuid)}"


def _hash_identity(identity: str) -> str:
    return sha256(identity.encode()).hexdigest()[:_SHOWN]


def _replace_in_failed_run(failed: FailedRun) -> FailedRun:
    return FailedRun(run=_hide_run(failed.run), error=_FILE.sub("<file>", failed.error))


def _replace_in_overlap(overlap: Overlap) -> Overlap:
    first, second = overlap.runs
    return replace(overlap, card=_hide_uuid(overlap.card), runs=(_hide_run(first), _hide_run(second)))

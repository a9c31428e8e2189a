"""What an analysis answers: the outcome for each kind, and whether recommended practices are followed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpureport.findings import NotJudged


class Outcome(StrEnum):
    """The outcome of looking for a kind in a run."""

    FOUND = "found"
    SUSPECTED = "suspected"
    JUDGED = "judged, nothing found"
    CANNOT_JUDGE = "cannot judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one kind on one group of devices.

    Attributes:
        kind: the kind.
        group: the devices in words (`4 x NVIDIA L4`), the same for every kind.
        devices: device ids of the group; empty in a run without a GPU.
        outcome: found, suspected (with low confidence only), judged, or cannot judge.
        findings: fingerprints of what was found, each once.
        missing: why it could not be judged, also where only a part of the group could not.
    """

    kind: str
    group: str
    devices: tuple[str, ...]
    outcome: Outcome
    findings: tuple[str, ...] = ()
    missing: tuple[NotJudged, ...] = ()

    @property
    def reason(self) -> str:
        """Why it could not be judged, with device ids; empty when it could."""
        return self.reason_with(str)

    @property
    def reason_code(self) -> str:
        """The same in one word, each once; empty when it could."""
        return "; ".join(dict.fromkeys(entry.code for entry in self.missing))

    @property
    def recording(self) -> str:
        """What to record so that it can be judged; empty where nothing is missing."""
        return "; ".join(dict.fromkeys(entry.recording for entry in self.missing if entry.recording))

    def reason_with(self, name: Callable[[str], str]) -> str:
        """Return each reason once, with the devices it holds for by `name` where these are not all."""
        holders: dict[str, list[str | None]] = {}
        for entry in self.missing:
            holders.setdefault(entry.reason, []).append(entry.device)
        return "; ".join(self._with_devices(reason, devices, name) for reason, devices in holders.items())

    def _with_devices(self, reason: str, devices: Sequence[str | None], name: Callable[[str], str]) -> str:
        named = [device for device in devices if device]
        few = len(devices) == len(named) < len(self.devices)
        return f"{', '.join(map(name, named))}: {reason}" if few else reason


class Practice(StrEnum):
    """Whether a recommended practice is followed."""

    DONE = "done"
    WORTH_TRYING = "worth trying"
    CANNOT_JUDGE = "cannot be judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistEntry:
    """One question of the practice, answered for a run.

    Attributes:
        item: the question's name.
        state: done, worth trying or cannot be judged.
        reason: what that rests on, in one sentence.
        recording: what to record where it cannot be judged; empty else.
        metrics: columns that `recording` asks for; empty where it asks for other things alone.
        other_recordings: what else it asks for.
        reason_code: the reason in one word of snake_case, which stays when the sentence changes.
    """

    item: str
    state: Practice
    reason: str
    recording: str = ""
    metrics: tuple[str, ...] = ()
    other_recordings: tuple[str, ...] = ()
    reason_code: str = ""

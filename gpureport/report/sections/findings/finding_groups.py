"""Findings of one kind and cause in one run, as one group, and what words say of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.comparison.gains import known_loss
from gpureport.findings import Finding, Severity
from gpureport.report.model.finding_card import Occurrence
from gpureport.report.runs.report_run import ReportRun, format_time
from gpureport.report.wording import display, terms

_SEVERITIES = list(Severity)
_SHARED = 0.9
"""Share of the time of all GPUs together that they must have on average to be taken to share their stretches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Findings of one kind and cause in one run, which follow from the same kind and cause or from none.

    Attributes:
        position: of the run.
        run: the run.
        findings: at least one.
        alone: whether the kind has no other cause there.
        root: kind and cause of what they follow from; None where they stand for themselves.
    """

    position: int
    run: ReportRun
    findings: tuple[Finding, ...]
    alone: bool
    root: tuple[str, str | None] | None = None

    @property
    def lost(self) -> float | None:
        """GPU-seconds lost, as far as known; None when not known of any finding."""
        known = [finding.lost_gpu_seconds for finding in self.findings if finding.lost_gpu_seconds is not None]
        return sum(known) if known else None

    @property
    def cost(self) -> float | None:
        """What the lost time cost, as far as it is known; None where no price is stated."""
        stated = self.run.analysis.cost
        known = [cost for finding in self.findings if stated and (cost := stated.cost_of(finding)) is not None]
        return sum(known) if known else None

    @property
    def severity(self) -> Severity:
        """The highest severity."""
        return max((finding.severity for finding in self.findings), key=_SEVERITIES.index)

    @property
    def worst(self) -> Finding:
        """The finding that lost most."""
        return max(self.findings, key=lambda f: (f.lost_gpu_seconds or 0.0, _SEVERITIES.index(f.severity)))

    @property
    def devices(self) -> list[str]:
        """Devices concerned, each once."""
        return list(dict.fromkeys(device for finding in self.findings for device in finding.devices))

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Fingerprints of the findings, each once."""
        return tuple(dict.fromkeys(finding.fingerprint for finding in self.findings))

    def explains(self, other: "Group") -> bool:
        """Whether what another group holds follows from this one."""
        here = self.position == other.position and self.root is None
        return here and other.root == (self.worst.kind, self.worst.cause)


def groups(position: int, run: ReportRun) -> Iterator[Group]:
    """Yield the findings of a run, those of one kind and cause together, apart by what they follow from."""
    named = {finding.fingerprint: (finding.kind, finding.cause) for finding in run.analysis.findings}
    gathered: dict[tuple[str, str | None, tuple[str, str | None] | None], list[Finding]] = {}
    for finding in run.analysis.findings:
        root = named.get(finding.root or "")
        gathered.setdefault((finding.kind, finding.cause, root), []).append(finding)
    kinds = [kind for kind, _ in {(kind, cause): None for kind, cause, _ in gathered}]
    for (kind, _, root), findings in gathered.items():
        yield Group(position=position, run=run, findings=tuple(findings), alone=kinds.count(kind) == 1, root=root)


def title(group: Group) -> str:
    """Return the kind in words, with the GPUs concerned."""
    kind = terms.kind_title(display.shorten(display.clean(group.worst.kind), 80), group.worst.cause)
    named = "" if group.alone else f" (cause: {cause(group.worst) or 'not named'})"
    return f"{kind}{named}, {group.run.devices(group.devices)}" if group.devices else f"{kind}{named}"


def cause(finding: Finding) -> str:
    """Return the cause in words; empty where it is not known."""
    return display.shorten(display.clean(finding.cause or "").replace("_", " "), 80)


def lost(group: Group, ratio: float | None) -> str:
    """Return the GPU time lost in words, as a share of the GPU time in which jobs held GPUs."""
    unknown = known_loss.loses_unknown_time(group.findings)
    base = "the jobs' GPU time" if group.run.analysis.no_job_gpu_seconds else "the run"
    if not group.lost:
        return "loss not known" if unknown else "no direct loss"
    stated = group.run.analysis.cost
    parts = [f"{display.percent(ratio)} of {base}"] if ratio is not None else []
    parts += [f"costs {display.money(group.cost, stated.currency)}"] if stated and group.cost is not None else []
    share = f" ({', '.join(parts)})" if parts else ""
    return f"{'at least' if unknown else 'up to'} {display.gpu_time(group.lost)}{share}"


def summary(group: Group) -> str:
    """Return the finding's own sentence, or for several how many there are and how long they last."""
    largest = terms.humanize(display.clean_sentence(group.worst.summary))
    if len(group.findings) == 1:
        return largest
    held = [(finding, group.run.held_stretches(finding)) for finding in group.findings]
    spans = [stretch.seconds for _, stretches in held for stretch in stretches]
    count = counted(group)
    if not spans:
        return f"{count}. Largest: {largest}"
    shared, every = _shared(group)
    if shared:
        count += f"{'' if every else ', most of them'} on {group.run.devices(group.devices)}"
    everybody = len(group.run.run.gpus)
    total = sum(
        stretch.seconds * (len(finding.devices) or everybody) for finding, stretches in held for stretch in stretches
    )
    whose = "in all" if len(group.devices) == 1 else "of GPU time"
    return f"{count}, {display.duration(total)} {whose}, the longest {display.duration(max(spans))}. Largest: {largest}"


def counted(group: Group) -> str:
    """Return how many there are, those that GPUs share as one: `7 gaps`."""
    described = terms.DESCRIPTIONS.get(group.worst.kind)
    noun = described.stretch if described else ""
    stretches = _shared(group)[0] if len(group.findings) > 1 else 0
    return _counted(stretches or len(group.findings), noun or ("stretch" if stretches else "finding"))


def where(group: Group, found: Sequence[Occurrence], count: int) -> str:
    """Return devices and time in words; `found` are the first of `count` stretches, all of which may be left out."""
    if not found:
        return "whole run"
    first = min(interval.start for finding in group.findings for interval in finding.intervals)
    timed = not group.run.run.quality.synthetic_time
    stamp = format_time(group.run.run, first)
    if count == 1:
        return f"{found[0].device}, {found[0].text}{f', from {stamp}' if timed else ''}"
    number = _shared(group)[0] or count
    told = f"{_counted(number, 'stretch')},{' the first' if number > 1 else ''}"
    return f"{told} {display.elapsed(found[0].start)} after the start{f', at {stamp}' if timed else ''}"


def occurrences(group: Group) -> Iterator[Occurrence]:
    """Yield every stretch in order of time, then of device."""
    names = {devices: group.run.devices(devices) for devices in {finding.devices for finding in group.findings}}
    stretches = [
        (interval.start, interval.end, names[finding.devices])
        for finding in group.findings
        for interval in finding.intervals
    ]
    for start, end, device in sorted(stretches):
        begin, finish = group.run.since_start(start), group.run.since_start(end)
        text = f"{display.elapsed(begin)} to {display.elapsed(finish)} ({display.duration(finish - begin)})"
        yield Occurrence(device=device, start=begin, end=finish, text=text)


def _counted(count: int, noun: str) -> str:
    return display.plural(count, f"{noun}e" if noun == "stretch" and count != 1 else noun)


def _shared(group: Group) -> tuple[int, bool]:
    """Return how many stretches there are when devices share nearly all, and whether each does; 0 when they differ."""
    spans = sorted((i.start, i.end) for finding in group.findings for i in finding.intervals)
    devices = group.devices
    if len(devices) < 2 or not spans:  # noqa: PLR2004 - one device shares with nobody
        return 0, False
    merged = [list(spans[0])]
    for start, end in spans[1:]:
        if start > merged[-1][1]:
            merged.append([start, end])
        merged[-1][1] = max(merged[-1][1], end)
    together = sum(end - start for start, end in merged)
    own = dict.fromkeys(devices, 0)
    for finding in group.findings:
        for device in finding.devices:
            own[device] += sum(interval.end - interval.start for interval in finding.intervals)
    if sum(own.values()) < _SHARED * together * len(devices):
        return 0, False
    return len(merged), min(own.values()) >= _SHARED * together

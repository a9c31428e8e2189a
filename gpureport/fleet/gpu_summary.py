"""What one run did on one GPU, small enough to keep for a hundred thousand runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from gpureport.analysis.results import LOST_CLASSES
from gpureport.findings import Severity
from gpureport.recording import Card, identify_card


class HealthCheck(StrEnum):
    """What became of a check on the health of a GPU in one run."""

    FOUND = "found"
    CLEAR = "clear"
    NOT_ASSESSED = "not assessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingSummary:
    """The findings of one run that share kind, cause and devices, as far as they concern one GPU.

    Attributes:
        kind: the rule's name.
        cause: what lies behind them, where known.
        severity: the highest.
        count: how many there are: an idle gap is a finding each.
        lost_gpu_seconds: time they lost on this GPU at most, of several GPUs its part by the time of their class, or
            an equal one; None where it cannot be put in GPU time.
        fingerprint: the same night after night.
        is_consequence: whether they follow from another finding, whose loss theirs is part of.
        steps: names of the steps of the catalogue they ask for, the most promising first; none for a loss in a
            recording too short to assess it.
    """

    kind: str
    cause: str | None
    severity: Severity
    count: int
    lost_gpu_seconds: float | None
    fingerprint: str
    is_consequence: bool
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """Signs of a sick GPU in one run; None is not recorded.

    Attributes:
        max_temperature_celsius: highest core temperature.
        heat_slowed_seconds: time in which heat held the clock down.
        hardware_slowed_seconds: time in which a power brake or another fault of the hardware did.
        ecc_corrected: memory errors corrected during the run.
        ecc_uncorrected: memory errors during the run that could not be corrected.
        remapped_rows: rows of memory remapped over the life of the GPU, as last read.
        gpu_lost: whether the GPU stopped answering.
        slow_link: whether its PCIe link ran below what card and slot allow, at warning level or above.
    """

    max_temperature_celsius: float | None = None
    heat_slowed_seconds: float | None = None
    hardware_slowed_seconds: float | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    gpu_lost: HealthCheck = HealthCheck.NOT_ASSESSED
    slow_link: HealthCheck = HealthCheck.NOT_ASSESSED


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSummary:
    """What one run did on one GPU; without a GPU, or failed, it is a summary without a device.

    Prices are applied to it later. Times are microseconds as in `Run`; None is not recorded.

    Attributes:
        key: what it was made from: hash of the series, the rules and their settings.
        run_id: id of the run.
        run_name: its name.
        source: locator of the first of its sources; None where it could not be read.
        step: label of its optimization step.
        node: name of the machine of the GPU.
        device: device id (`gpu:0`); None for a run without a GPU.
        uuid: identity of the card.
        model: marketing name of the card.
        started: first sample of the run; None where its log has no dates.
        ended: last sample of the run.
        timezone: zone name; None where the log has none.
        observed_seconds: time of the run that samples own.
        seconds: by class of GPU time; together the time from first to last sample. Empty without a GPU.
        energy_joules: energy of the GPU.
        utilisation: time-weighted mean of the GPU utilisation, 0 to 1, over the time of jobs.
        memory_peak_bytes: highest memory in use.
        memory_total_bytes: memory installed.
        findings: the gravest first; findings on the whole job are on each of its GPUs.
        not_judged: kinds that could not be judged.
        health: signs of a sick GPU.
        work_amount: what the whole run accomplished, in `work_unit`.
        work_unit: steps, samples, tokens or epochs.
        params: what the run was configured with.
        tags: what it was labelled with.
        error: why the run could not be summarised; empty where it could.
    """

    key: str
    run_id: str
    run_name: str
    source: str | None = None
    step: str | None = None
    node: str | None = None
    device: str | None = None
    uuid: str | None = None
    model: str | None = None
    started: int | None = None
    ended: int | None = None
    timezone: str | None = None
    observed_seconds: float | None = None
    seconds: tuple[tuple[str, float], ...] = ()
    energy_joules: float | None = None
    utilisation: float | None = None
    memory_peak_bytes: int | None = None
    memory_total_bytes: int | None = None
    findings: tuple[FindingSummary, ...] = ()
    not_judged: tuple[str, ...] = ()
    health: GpuHealth = GpuHealth()
    work_amount: float | None = None
    work_unit: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    error: str = ""

    @property
    def card(self) -> Card | None:
        """What tells its GPU from others over runs; None where nothing does."""
        return identify_card(self.uuid, self.node, self.device or "")

    @property
    def local_device(self) -> str:
        """The id of the device without the name of its node."""
        return (self.device or "").rpartition("/")[2]

    @property
    def job_seconds(self) -> float:
        """Time in which a job held the GPU, or may have: what shares of GPU time are shares of."""
        return fsum(amount for name, amount in self.seconds if name != "no_job")

    @property
    def lost_seconds(self) -> float:
        """Time that was lost: neither used, nor unknown, nor outside any job."""
        return fsum(amount for name, amount in self.seconds if name in LOST_CLASSES)

    @property
    def unknown_seconds(self) -> float:
        """Time of which nothing is known."""
        return dict(self.seconds).get("no_samples", 0.0)

    def root_losses(self) -> Iterator[tuple[FindingSummary, float]]:
        """Yield findings that lost time and follow from no other, with the seconds each could give back.

        Findings may overlap: where they say more than the GPU lost, each is scaled down alike.
        """
        roots = [each for each in self.findings if each.lost_gpu_seconds and not each.is_consequence]
        stated = fsum(each.lost_gpu_seconds or 0.0 for each in roots)
        scale = min(1.0, self.lost_seconds / stated) if stated else 0.0
        for each in roots:
            yield each, (each.lost_gpu_seconds or 0.0) * scale

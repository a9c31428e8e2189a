"""Kinds of GPU for labelled runs: what they draw, hold and bear, and over what their readings average."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One kind of GPU.

    Attributes:
        name: as nvidia-smi prints it.
        memory_mib: memory installed.
        reserved_mib: memory the driver keeps.
        limit_watts: default power limit.
        idle_watts: power with no process on it.
        ready_watts: power with a process and nothing running.
        clock_mhz: highest clock of the multiprocessors.
        idle_clock_mhz: clock with no process.
        slowdown_celsius: temperature from which clocks are lowered.
        generation: highest PCIe generation.
        window_seconds: what a utilisation reading averages over; the driver takes a new one as often.
        power_seconds: what a power reading averages over.
    """

    name: str
    memory_mib: int
    reserved_mib: int
    limit_watts: float
    idle_watts: float
    ready_watts: float
    clock_mhz: int
    idle_clock_mhz: int
    slowdown_celsius: float
    generation: int
    window_seconds: float
    power_seconds: float


V100 = Card(
    name="Tesla V100-SXM2-32GB",
    memory_mib=32768,
    reserved_mib=267,
    limit_watts=300.0,
    idle_watts=41.0,
    ready_watts=56.0,
    clock_mhz=1530,
    idle_clock_mhz=135,
    slowdown_celsius=83.0,
    generation=3,
    window_seconds=1 / 6,
    power_seconds=0.025,
)
RTX3090 = Card(
    name="NVIDIA GeForce RTX 3090",
    memory_mib=24576,
    reserved_mib=312,
    limit_watts=350.0,
    idle_watts=21.0,
    ready_watts=105.0,
    clock_mhz=2100,
    idle_clock_mhz=210,
    slowdown_celsius=93.0,
    generation=4,
    window_seconds=0.2,
    power_seconds=1.0,
)
L4 = Card(
    name="NVIDIA L4",
    memory_mib=23034,
    reserved_mib=556,
    limit_watts=72.0,
    idle_watts=12.0,
    ready_watts=28.0,
    clock_mhz=2040,
    idle_clock_mhz=210,
    slowdown_celsius=86.0,
    generation=4,
    window_seconds=0.5,
    power_seconds=1.0,
)
A100 = Card(
    name="NVIDIA A100-SXM4-80GB",
    memory_mib=81920,
    reserved_mib=616,
    limit_watts=400.0,
    idle_watts=55.0,
    ready_watts=84.0,
    clock_mhz=1410,
    idle_clock_mhz=210,
    slowdown_celsius=85.0,
    generation=4,
    window_seconds=1.0,
    power_seconds=0.025,
)
H100 = Card(
    name="NVIDIA H100 80GB HBM3",
    memory_mib=81559,
    reserved_mib=551,
    limit_watts=700.0,
    idle_watts=70.0,
    ready_watts=118.0,
    clock_mhz=1980,
    idle_clock_mhz=345,
    slowdown_celsius=87.0,
    generation=5,
    window_seconds=0.5,
    power_seconds=1.0,
)
CARDS = (V100, RTX3090, L4, A100, H100)

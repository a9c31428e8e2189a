"""Kinds of GPU for labelled runs: what they draw, hold and bear, and over what their readings average."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    name: str  # as nvidia-smi prints it
    memory_mib: int  # memory installed
    reserved_mib: int  # memory the driver keeps
    limit_watts: float  # default power limit
    idle_watts: float  # power with no process on it
    ready_watts: float  # power with a process and nothing running
    clock_mhz: int  # highest clock of the multiprocessors
    idle_clock_mhz: int  # clock with no process
    slowdown_celsius: float  # temperature from which clocks are lowered
    generation: int  # highest PCIe generation
    window_seconds: float  # what a utilisation reading averages over; the driver takes a new one as often
    power_seconds: float  # what a power reading averages over


V100 = Card("Tesla V100-SXM2-32GB", 32768, 267, 300.0, 41.0, 56.0, 1530, 135, 83.0, 3, 1 / 6, 0.025)
RTX3090 = Card("NVIDIA GeForce RTX 3090", 24576, 312, 350.0, 21.0, 105.0, 2100, 210, 93.0, 4, 0.2, 1.0)
L4 = Card("NVIDIA L4", 23034, 556, 72.0, 12.0, 28.0, 2040, 210, 86.0, 4, 0.5, 1.0)
A100 = Card("NVIDIA A100-SXM4-80GB", 81920, 616, 400.0, 55.0, 84.0, 1410, 210, 85.0, 4, 1.0, 0.025)
H100 = Card("NVIDIA H100 80GB HBM3", 81559, 551, 700.0, 70.0, 118.0, 1980, 345, 87.0, 5, 0.5, 1.0)
CARDS = (V100, RTX3090, L4, A100, H100)

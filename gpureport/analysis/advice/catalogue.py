"""Every step there is, by name."""

from gpureport.analysis.advice import computing, feeding, holding, machine
from gpureport.analysis.advice.step import Step

CHAPTERS: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("Feeding the GPU", feeding.STEPS),
    ("Doing more in the time", computing.STEPS),
    ("Holding GPUs and memory", holding.STEPS),
    ("The machine", machine.STEPS),
)
"""The steps by what they act on."""

STEPS = {step.name: step for _, steps in CHAPTERS for step in steps}
"""The steps by name."""

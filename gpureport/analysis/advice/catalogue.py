"""Every step there is, by name."""

from gpureport.analysis.advice import allocation_steps, compute_steps, input_steps, machine_steps
from gpureport.analysis.advice.step import Step

CHAPTERS: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("Feeding the GPU", input_steps.STEPS),
    ("Doing more in the time", compute_steps.STEPS),
    ("Holding GPUs and memory", allocation_steps.STEPS),
    ("The machine", machine_steps.STEPS),
)
"""The steps by what they act on."""

STEPS = {step.name: step for _, steps in CHAPTERS for step in steps}
"""The steps by name."""

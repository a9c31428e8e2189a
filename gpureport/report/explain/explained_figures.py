"""What `gpureport explain` says of a figure of a run that is no metric."""

from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.report.model.shapes import Explanation, Fact, Section
from gpureport.report.wording.figure_names import name_figure

_OF_WORK = "The work is what --work or the job's own throughput says."
_CLASS = "Explain the class for what it holds"

FIGURES: dict[str, tuple[str, str, str]] = {
    "lost_ratio": (
        "The share of the GPU time of jobs in classes that count as lost. Short pauses do not count.",
        "a ratio; 1 is 100%",
        "lost <= 10%",
    ),
    "lost": (
        "The GPU time of all classes that count as lost: lost_ratio as a rule has it.",
        "a share, or hours",
        "lost <= 10%",
    ),
    "idle_ratio": (
        "The share of the sampled time with a utilisation of 5% or less, start-up and end included, all GPUs together.",
        "a ratio; 1 is 100%",
        "idle_ratio <= 5%",
    ),
    "idle_seconds": (
        "The time of one GPU in which utilisation was 5% or less: idle_ratio as seconds.",
        "seconds",
        "idle_seconds <= 10 min",
    ),
    "waiting_ratio": (
        (
            f"The share of the GPU time that went to waiting for data. {_CLASS}: gpureport explain waiting_for_input. "
            "Not known where the log leaves more time than that open: low use of unknown cause, or many short pauses."
        ),
        "a ratio; 1 is 100%",
        "waiting_for_input <= 5%",
    ),
    "throttled_ratio": (
        f"The share of the GPU time that lowered clocks cost. {_CLASS}: gpureport explain throttled.",
        "a ratio; 1 is 100%",
        "throttled <= 2%",
    ),
    "startup_ratio": (
        f"The share of the GPU time before the first work. {_CLASS}: gpureport explain startup.",
        "a ratio; 1 is 100%",
        "startup <= 5%",
    ),
    "coverage_ratio": (
        "The share of the time from the first to the last sample that lies near a sample.",
        "a ratio; 1 is 100%",
        "coverage >= 95%",
    ),
    "coverage": ("coverage_ratio as a rule has it.", "a share", "coverage >= 95%"),
    "observed_seconds": ("The time that samples of one GPU stand for.", "seconds", "observed_seconds >= 10 min"),
    "gpu_seconds": (
        "GPU time: the time from the first to the last sample, times the GPUs, without the time in which no job ran.",
        "seconds",
        "gpu_seconds <= 8 GPU-h",
    ),
    "gpu_seconds_per_1000_work": (
        f"{name_figure(PER_WORK)}, for the whole job. {_OF_WORK}",
        "seconds",
        "gpu_seconds_per_1000_work <= 30 s",
    ),
    "work_rate_hertz": (
        f"{name_figure(WORK_RATE)}: units of work a second, start-up included, all GPUs together. {_OF_WORK}",
        "units a second",
        "work_rate_hertz >= 900 /s",
    ),
    "training_rate_hertz": (
        f"{name_figure(TRAINING_RATE)}: units of work a second, as the training loop logged it, or the steady phase.",
        "units a second",
        "training_rate_hertz >= 900 /s",
    ),
    "energy_joules": (
        "The energy of the GPUs alone: the integral of their sampled power over the run.",
        "joules",
        "energy_joules <= 2 kWh",
    ),
    "energy_joules_per_1000_work": (
        f"{name_figure(ENERGY_PER_WORK)}, that of the GPUs. {_OF_WORK}",
        "joules",
        "energy_joules_per_1000_work <= 0.1 kWh",
    ),
    "cost_per_1000_work": (
        f"{name_figure(COST_PER_WORK)}, at the price of a GPU-hour. {_OF_WORK}",
        "the currency of the price",
        "cost_per_1000_work <= 0.05 EUR",
    ),
    "cost": (
        "What the GPU time of a run cost, at the price of a GPU-hour.",
        "the currency of the price",
        "cost <= 3 EUR",
    ),
    "idle_cost": (
        "What idle time and unused GPUs cost of it.",
        "the currency of the price",
        "idle_cost <= 1 EUR",
    ),
    "carbon": ("The energy of the GPUs times the carbon intensity that is stated.", "grams of CO2", "carbon <= 2 kg"),
    "seconds_to_target": (
        "The time from the start of the job until a training metric first reached the value of --target.",
        "seconds",
        "seconds_to_target <= 2 h",
    ),
    "gpu_seconds_to_target": ("GPU time until then.", "seconds", "gpu_seconds_to_target <= 8 GPU-h"),
    "cost_to_target": ("What it cost until then.", "the currency of the price", "cost_to_target <= 30 EUR"),
    "gpu_memory_peak_bytes": ("The highest memory in use on one GPU.", "bytes", "gpu_memory_peak_bytes <= 70 GiB"),
    "gpu_memory_headroom_ratio": (
        "The share of the memory of one GPU that was never used.",
        "a ratio; 1 is 100%",
        "gpu_memory_headroom_ratio >= 5%",
    ),
    "duration": ("The time from the first to the last sample of a run.", "seconds", "duration >= 1 h"),
    "rejected": ("Lines of the log that were not understood.", "a count", "rejected <= 0"),
    "not_judged": ("Checks that could not be assessed with what was recorded.", "a count", "not_judged <= 8"),
    "findings_problem": ("Findings of a run that are problems.", "a count", "problem <= 0"),
    "findings_warning": ("Findings of a run that are warnings.", "a count", "warning <= 2"),
    "findings_info": ("Findings of a run that are for information.", "a count", "info <= 5"),
}
"""Meaning, unit and a rule on it, by the name that JSON, rules and the history of nights have for a figure."""


def explain_figure(name: str) -> Explanation | None:
    """Return what a figure of a run means, and how a rule limits it, if it is one."""
    if name not in FIGURES:
        return None
    meaning, unit, rule = FIGURES[name]
    facts = (
        Fact(name="Meaning", text=meaning),
        Fact(name="Unit", text=unit),
        Fact(name="As a rule", text=f"--fail-on '{rule}'"),
    )
    return Explanation(title=name, sections=(Section(title="", facts=facts),))

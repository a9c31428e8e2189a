"""When each step first reached the quality that a person named, in words."""

from collections.abc import Iterator

from gpureport.comparison.chain import Comparison
from gpureport.comparison.time_to_target import MissingTarget, TimeToTarget, measure_time_to_target
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.comparison.quality_rows import shown_name
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display


def build_target_facts(comparison: Comparison) -> Iterator[Fact]:
    """Yield one statement on the time to the target in all steps, where a target was given."""
    found = [measure_time_to_target(step, comparison.goals) for step in comparison.steps]
    times = [each for each in found if each is not None]
    if not times:
        return
    currency = spending.currency([analysis for step in comparison.steps for analysis in step.analyses])
    name = f"Time to {shown_name(times[0].name)}={times[0].target:g}"
    yield Fact(name=name, text=f"{'; '.join(_describe_step(each, currency) for each in times)}.")


def _describe_step(found: TimeToTarget, currency: str) -> str:
    label = display.clean(found.step)
    if found.seconds is None:
        return f"{label}: {_describe_missing(found)}"
    spent = [] if found.gpu_seconds is None else [display.gpu_time(found.gpu_seconds)]
    spent += [] if found.cost is None else [display.money(found.cost, display.clean(currency))]
    runs = [f"mean of {len(found.runs)} runs"] if len(found.runs) > 1 else []
    return f"{label}: {display.duration(found.seconds)} ({', '.join([*spent, *runs])})"


def _describe_missing(found: TimeToTarget) -> str:
    """Return why a step has no time, by how many of its runs."""
    reasons = [run.missing for run in found.runs if run.missing is not None]
    several = len(found.runs) > 1
    texts = []
    for reason in MissingTarget:
        count = reasons.count(reason)
        if count:
            texts.append(f"{reason.value}{f' in {count} of {len(found.runs)} runs' if several else ''}")
    return display.join_words(texts)

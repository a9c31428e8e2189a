"""What there is to say of the steps that a kind of finding is given."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.advice.choose import STEPS, Step
from gpureport.analysis.kinds import KINDS
from gpureport.report.model.shapes import Fact, Section
from gpureport.report.wording import display


def build_guide_sections(kinds: Sequence[str]) -> Iterator[Section]:
    """Yield which steps some kinds have, in order and by cause where that decides, then each step once."""
    chosen = [(kind, cause, steps) for kind in kinds for cause, steps in KINDS[kind].steps.items() if steps]
    yield Section(
        title="Steps, the most promising first",
        paragraphs=("A step is left out of a report where the recording rules out what it needs.",),
        facts=tuple(
            Fact(
                name=_when(kind, cause, several=len(kinds) > 1),
                text=number_steps([STEPS[name].title for name in steps]),
            )
            for kind, cause, steps in chosen
        ),
    )
    for name in dict.fromkeys(name for *_, steps in chosen for name in steps):
        yield Section(title=STEPS[name].title, facts=tuple(build_step_facts(STEPS[name])))


def build_step_facts(step: Step) -> Iterator[Fact]:
    """Yield what there is to say of a step."""
    yield Fact(name="Do", text=step.do)
    yield Fact(name="When", text=step.when)
    if step.needs:
        yield Fact(name="Only if", text=display.join_words(list(step.needs)))
    if step.frameworks:
        yield Fact(name="For", text=name_frameworks(step))
    yield Fact(name="Risk", text=step.risk)
    yield Fact(name="Check", text=step.check)
    yield Fact(name="Source", text=step.source)


def name_frameworks(step: Step) -> str:
    """Return which frameworks a step is for, in words."""
    named = display.join_words([str(each) for each in step.frameworks if each is not None])
    if not named:
        return "a run that names no framework"
    return f"{named}, or a run that names no framework" if None in step.frameworks else f"a run that names {named}"


def guide_titles(kinds: Sequence[str]) -> list[str]:
    """Return what the steps of some kinds are called, each once, in the order in which causes give them."""
    chosen = (name for kind in kinds for steps in KINDS[kind].steps.values() for name in steps)
    return [STEPS[name].title for name in dict.fromkeys(chosen)]


def _when(kind: str, cause: str, *, several: bool) -> str:
    where = f"cause {cause}" if cause else "any other cause" if len(KINDS[kind].steps) > 1 else ""
    return ", ".join(filter(None, [kind if several else "", where]))


def number_steps(titles: Sequence[str]) -> str:
    """Return titles of steps with their numbers, as a sentence."""
    return "; ".join(f"{place}. {title}" for place, title in enumerate(titles, 1))

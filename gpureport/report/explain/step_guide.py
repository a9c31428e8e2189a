"""What there is to say of the steps that a kind of finding is given."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.advice.choose import STEPS, Step
from gpureport.analysis.kinds import KINDS, AdvicePath
from gpureport.report.model.shapes import Fact, Section
from gpureport.report.wording import display


def build_guide_sections(kinds: Sequence[str]) -> Iterator[Section]:
    """Yield which steps some kinds have, in order and by cause where that decides, then each step once."""
    chosen = [(kind, path) for kind in kinds for path in KINDS[kind].paths]
    several = len(kinds) > 1
    yield Section(
        title="Steps, the most promising first",
        paragraphs=("A step is left out of a report where the recording rules out what it needs.",),
        facts=tuple(
            Fact(name=_when(kind, path, several=several), text=number_steps([STEPS[name].title for name in path.steps]))
            for kind, path in chosen
        ),
    )
    for name in dict.fromkeys(name for _, path in chosen for name in path.steps):
        yield Section(title=STEPS[name].title, facts=tuple(build_step_facts(STEPS[name])))


def build_step_facts(step: Step) -> Iterator[Fact]:
    """Yield what there is to say of a step."""
    yield Fact(name="Do", text=step.do)
    yield Fact(name="When", text=step.when)
    if step.needs:
        yield Fact(name="Only if", text=display.join_words([words for words, _ in step.needs]))
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
    chosen = (name for kind in kinds for path in KINDS[kind].paths for name in path.steps)
    return [STEPS[name].title for name in dict.fromkeys(chosen)]


def _when(kind: str, path: AdvicePath, *, several: bool) -> str:
    cause = (
        f"cause {' or '.join(path.causes)}" if path.causes else "any other cause" if len(KINDS[kind].paths) > 1 else ""
    )
    return ", ".join(filter(None, [kind if several else "", cause]))


def number_steps(titles: Sequence[str]) -> str:
    """Return titles of steps with their numbers, as a sentence."""
    return "; ".join(f"{place}. {title}" for place, title in enumerate(titles, 1))

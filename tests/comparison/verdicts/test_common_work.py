"""Work that was stated once for runs of which params say that they did different amounts."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.verdicts.common_work import UnequalAmounts, find_unequal_amounts
from gpureport.report.sections.head.recording_doubts import describe_doubts, describe_unequal_amounts
from gpureport.testing import ReasonKind, Verdict, Work
from tests.comparison.runs import Points, level, sampled

Params = dict[str, str]
COMMON = Work(amount=44_800, unit="images", is_common=True)
STEPS = (Params(steps="200"), Params(steps="700"))


def lay_out(*params: Params, work: Work = COMMON, training: Points | None = None) -> list[SampledRun]:
    """Return a run for each set of params, each its own step."""
    return [
        sampled(
            f"r{place}",
            step=str(place),
            util=level(80, 300, place),
            work=work,
            params=tuple(each.items()),
            training=training or [],
        )
        for place, each in enumerate(params)
    ]


@pytest.mark.parametrize(
    ("params", "name", "amounts"),
    [
        (STEPS, "steps", (200, 700)),
        ((Params(steps="200", batch_size="64"), Params(steps="200", batch_size="128")), "batch size", (64, 128)),
        ((Params(max_steps="200"), Params(max_steps="700"), Params()), "max_steps", (200, 700)),
        ((Params({"trainer.maxSteps": "1e3"}), Params({"trainer.maxSteps": "700"})), "max_steps", (700, 1000)),
        ((Params({"config/training_args/steps": "5"}), Params({"config/training_args/steps": "7"})), "steps", (5, 7)),
        ((Params({"--max-iters": "5"}), Params({"--max-iters": "7"})), "max_iters", (5, 7)),
        ((Params(epochs="3"), Params(epochs="5")), "epochs", (3, 5)),
        ((Params(max_steps="-1", epochs="3"), Params(max_steps="-1", epochs="4")), "epochs", (3, 4)),
        ((Params(steps="200", batch_size="64"), Params(steps="700", batch_size="64")), "steps", (200, 700)),
    ],
)
def test_params_tell_that_runs_did_not_do_the_same(
    params: tuple[Params, ...], name: str, amounts: tuple[float]
) -> None:
    """By steps or epochs, whatever a framework calls them; runs that do not name them say nothing."""
    assert find_unequal_amounts(lay_out(*params)) == UnequalAmounts(name=name, amounts=amounts)


@pytest.mark.parametrize(
    "params",
    [
        (Params(), Params()),
        (Params(steps="200"), Params()),
        (Params(steps="200"), Params(steps="200.0")),
        (Params(steps="200", batch_size="64"), Params(steps="100", batch_size="128")),
        (Params(max_steps="200", epochs="1"), Params(max_steps="200", epochs="2")),
        (Params({"eval.steps": "5", "warmup_steps": "1"}), Params({"eval.steps": "7", "warmup_steps": "2"})),
        (Params(steps="all"), Params(steps="some")),
        (Params({"sampler.num_steps": "20"}), Params({"sampler.num_steps": "50"})),
        (Params({"eval.args.max_steps": "20"}), Params({"eval.args.max_steps": "50"})),
        (Params({"catalog.max_steps": "20"}), Params({"catalog.max_steps": "50"})),
        (Params(max_steps="600", num_steps="20"), Params(max_steps="600", num_steps="50")),
        *(
            (Params({"trainer.max_steps": "600", other: "20"}), Params({"trainer.max_steps": "600", other: "50"}))
            for other in ("sampler.num_steps", "diffusion.num_steps", "env.max_steps")
        ),
        (
            Params({"max_steps": "600", "sampler.num_steps": "20"}),
            Params({"max_steps": "600", "sampler.num_steps": "50"}),
        ),
        (Params({"env.max_steps": "500"}), Params({"env.max_steps": "1000"})),
        (Params({"validation.steps": "5"}), Params({"validation.steps": "7"})),
    ],
)
def test_other_params_tell_nothing(params: tuple[Params, ...]) -> None:
    """As many images take half the steps in batches of twice the size; one length that all share is that of the job."""
    assert find_unequal_amounts(lay_out(*params)) is None


def test_params_of_a_run_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many figures and pairs ask for them."""
    read: list[str] = []

    def note(name: str) -> str:
        read.append(name)
        return name

    monkeypatch.setattr("gpureport.comparison.setup.job_length.normalize_name", note)
    compare(lay_out(*(Params(tag=f"read once {place}", steps=str(place)) for place in (1, 2, 3))))
    assert len(read) <= 12, "two params of three runs, once for steps and once for epochs"


def test_amounts_stated_one_by_one_are_believed() -> None:
    """A person has thought of each; and what a training log counts is known."""
    assert find_unequal_amounts(lay_out(*STEPS, work=replace(COMMON, is_common=False))) is None
    first, second = lay_out(*STEPS)
    (other,) = lay_out(STEPS[1], work=replace(COMMON, amount=1))
    assert find_unequal_amounts([first, other]) is None
    rates = [(float(at), at, "images_per_s", 150.0) for at in range(5, 300, 5)]
    assert find_unequal_amounts(lay_out(*STEPS, training=rates)) is None
    assert find_unequal_amounts([first, second]) is not None


def test_steps_are_counted_as_steps() -> None:
    """Of another size they are as many."""
    params = (Params(steps="200", batch_size="64"), Params(steps="100", batch_size="128"))
    assert find_unequal_amounts(lay_out(*params, work=Work(amount=200, unit="steps", is_common=True))) is not None


def test_nothing_per_unit_of_work_is_judged() -> None:
    """Nor are totals, and the first screen says why."""
    comparison = compare(lay_out(*STEPS))
    judged = {delta.metric: delta for delta in comparison.deltas}
    for metric in ("gpu_seconds_per_1000_work", "work_rate_hertz", "gpu_seconds"):
        reason = judged[metric].reason
        assert judged[metric].verdict is Verdict.NOT_ENOUGH_DATA
        assert reason is not None
        assert reason.kind is ReasonKind.COMMON_WORK
    text = "One --work for runs that differ in steps (200, 700): give one for each source."
    assert text in describe_doubts(comparison)
    assert describe_unequal_amounts(lay_out(*(Params(steps=str(count)) for count in range(1, 6)))) == text.replace(
        "200, 700", "1, 2, 3, …"
    )

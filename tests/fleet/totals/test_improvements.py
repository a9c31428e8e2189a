"""Who got better after which advice: only with evidence."""

from gpureport.analysis.cost.prices import Prices
from gpureport.fleet.fleet_report import Improvement
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.totals.improvements import find_improvements
from gpureport.fleet.totals.priced_gpu import price_summaries
from tests.fleet.gpu_summaries import make_finding, make_gpu

STARVED = {"computing": 1.0, "waiting_for_input": 1.0}
ADVICE = (make_finding("cpu_bound", 1.0, "prefetch", "loader_workers", cause="data"),)


def run(name: str, day: int, **values: object) -> GpuSummary:
    """Return a run of the job `train` of ann on a day of October."""
    times = {"started": f"2026-10-{day:02}T12:00", "ended": f"2026-10-{day:02}T14:00"}
    return make_gpu(name, **{**times, "user": "ann", "job_name": "train", **values})  # type: ignore[arg-type]  # what tests vary


def find(*gpus: GpuSummary) -> tuple[Improvement, ...]:
    """Return the improvements."""
    return find_improvements(price_summaries(gpus, Prices()))


def test_an_advised_step_that_helped() -> None:
    """The finding is gone, less is lost, and a changed param says which of the advised steps it was."""
    (found,) = find(
        run("b", 7, params=(("num_workers", "8"),), work=100.0),
        run("a", 5, hours=STARVED, findings=ADVICE, params=(("num_workers", "2"),), work=50.0),
    )
    assert (found.job, found.user, found.kind, found.cause) == ("train", "ann", "cpu_bound", "data")
    assert (found.step, found.setting) == ("loader_workers", "workers")
    assert ([each.id for each in found.before], [each.id for each in found.after]) == (["a"], ["b"])
    assert (found.lost_before, found.lost_after) == (0.5, 0.0)
    assert (found.gpu_seconds_per_work_before, found.gpu_seconds_per_work_after) == (144.0, 72.0)


def test_without_a_changed_setting_the_first_step_is_named() -> None:
    """It is then not known which step was taken."""
    (found,) = find(run("a", 5, hours=STARVED, findings=ADVICE), run("b", 7))
    assert (found.step, found.setting, found.work_unit) == ("prefetch", None, None)


def test_what_is_no_improvement() -> None:
    """A finding that came back, was not looked for, or went without less being lost; other models; slower work.

    Nor a run under a minute.
    """
    starved = run("a", 5, hours=STARVED, findings=ADVICE, work=50.0)
    assert not find(starved, run("b", 7), run("c", 9, hours=STARVED, findings=ADVICE))
    assert not find(starved, run("b", 7, not_judged=("cpu_bound",)))
    assert not find(starved, run("b", 7, hours={"computing": 1.0, "idle": 1.0}))
    assert not find(starved, run("b", 7, model="NVIDIA H100"))
    assert not find(starved, run("b", 7, work=40.0))
    assert not find(starved, run("b", 7, user="bob"))
    assert not find(starved, run("b", 7, hours={"computing": 50 / 3600}))
    short = run("a", 5, hours={"computing": 0.005, "waiting_for_input": 0.005}, findings=ADVICE)
    assert not find(short, run("b", 7))

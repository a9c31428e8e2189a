"""The sums over a fleet, from summaries whose truth is plain to see."""

import pytest

from gpureport.analysis.cost.prices import Prices, Rate
from gpureport.fleet.totals.fleet_totals import build_fleet_report
from tests.fleet.gpu_summaries import HOUR, make_finding, make_gpu

PRICES = Prices(currency="EUR", date="2026-10-01", rates=(Rate(amount=2.0, source="settings", model="L4"),))


def test_hours_and_money_by_class() -> None:
    """Every hour counts once, in its class, at the price of its model."""
    gpus = [
        make_gpu("a", hours={"computing": 6.0, "idle": 2.0, "no_job": 5.0}),
        make_gpu("a", device="gpu:1", hours={"computing": 1.0, "waiting_for_input": 1.0}),
        make_gpu("b", hours={"no_samples": 2.0}),
    ]
    report = build_fleet_report(gpus, PRICES)
    assert report.use.runs == 2
    assert report.use.gpu_seconds == 12 * HOUR
    assert report.use.lost_gpu_seconds == 3 * HOUR
    assert report.use.unknown_gpu_seconds == 2 * HOUR
    assert report.use.no_job_gpu_seconds == 5 * HOUR
    assert (report.use.cost, report.use.lost_cost) == (24.0, 6.0)
    assert [(each.name, each.gpu_seconds / HOUR) for each in report.classes] == [
        ("computing", 7.0),
        ("waiting_for_input", 1.0),
        ("idle", 2.0),
        ("no_samples", 2.0),
        ("no_job", 5.0),
    ]


def test_a_model_without_a_price_leaves_the_cost_unknown() -> None:
    """A sum that lacks a part is none; groups whose GPUs all have a price keep theirs."""
    gpus = [make_gpu("a", user="ann"), make_gpu("b", model="NVIDIA H100", user="bob")]
    report = build_fleet_report(gpus, PRICES, ["user"])
    assert report.use.cost is None
    assert report.prices.unpriced_models == ("NVIDIA H100",)
    assert {group.name: group.use.cost for group in report.groupings[0].groups} == {"ann": 4.0, "bob": None}


def test_groups_worst_first_and_the_rest_as_one() -> None:
    """Twenty groups, the runs without the label always among them, and the others together."""
    gpus = [make_gpu(f"r{place}", user=f"u{place}", hours={"idle": 30.0 - place}) for place in range(25)]
    gpus.append(make_gpu("nobody", hours={"computing": 1.0}))
    (grouping,) = build_fleet_report(gpus, Prices(), ["user"]).groupings
    assert [group.name for group in grouping.groups] == [*(f"u{place}" for place in range(20)), None]
    assert grouping.rest is not None
    assert grouping.rest.groups == 5
    assert grouping.rest.use.lost_gpu_seconds == sum(range(6, 11)) * HOUR
    listed = sum(group.use.gpu_seconds for group in (*grouping.groups, grouping.rest))
    assert listed == pytest.approx(sum(gpu.job_seconds for gpu in gpus))


def test_labels_are_found_under_their_other_names() -> None:
    """A user is the owner of a tracker's run; a node is that of the GPU."""
    gpus = [make_gpu("a", owner="ann", node="n1"), make_gpu("b", user="ann", node="n2")]
    by_user, by_node = build_fleet_report(gpus, Prices(), ["user", "node"]).groupings
    assert [group.name for group in by_user.groups] == ["ann"]
    assert sorted(group.name or "" for group in by_node.groups) == ["n1", "n2"]


def test_half_of_the_loss_lies_in_few_runs() -> None:
    """The fewest runs that hold half of it, and what they lost most to."""
    gpus = [
        make_gpu("bad", hours={"waiting_for_input": 10.0}),
        *(make_gpu(f"r{place}", hours={"idle": 1.0}) for place in range(10)),
    ]
    report = build_fleet_report(gpus, Prices())
    assert (report.half_lost_in, report.half_lost_class) == (1, "waiting_for_input")
    assert report.worst_runs[0].run.id == "bad"
    assert len(report.worst_runs) == 11


def test_runs_whose_loss_short_pauses_hide() -> None:
    """Where they took more time than usual, what is known is the least; the longest pauses come first."""
    gpus = [
        make_gpu("usual", hours={"computing": 9.0, "short_pauses": 1.0}),
        make_gpu("long", hours={"computing": 1.0, "short_pauses": 3.0}),
        make_gpu("longer", hours={"computing": 3.0, "short_pauses": 3.0}),
        make_gpu("longer", device="gpu:1", hours={"computing": 3.0, "short_pauses": 3.0}),
    ]
    gpus[1] = make_gpu("long", hours={"computing": 1.0, "short_pauses": 3.0, "idle": 1.0})
    report = build_fleet_report(gpus, Prices())
    assert [run.id for run in report.pausing_runs] == ["longer", "long"]
    assert [(each.run.id, each.is_lower_bound) for each in report.worst_runs] == [("long", True)]


def test_savings_count_each_hour_once() -> None:
    """An hour goes to the first step of its finding; findings that overlap share what the GPU lost."""
    slow_loader = make_finding("cpu_bound", 6.0, "loader_workers", "prefetch")
    pauses = make_finding("idle_gap", 6.0, "overlap_evaluation")
    gpus = [
        make_gpu("a", hours={"computing": 2.0, "waiting_for_input": 4.0}, findings=(slow_loader, pauses)),
        make_gpu("b", hours={"waiting_for_input": 6.0}, findings=(slow_loader,)),
    ]
    first, second = build_fleet_report(gpus, PRICES).savings
    assert (first.step, first.runs, first.gpu_seconds, first.cost) == ("loader_workers", 2, 8 * HOUR, 16.0)
    assert [run.id for run in first.examples] == ["b", "a"]
    assert first.other_steps == ("prefetch",)
    assert (second.step, second.gpu_seconds) == ("overlap_evaluation", 2 * HOUR)


def test_savings_are_called_as_in_the_reports_of_their_runs() -> None:
    """A second step for the same findings, and one that names GPUs, keep the names of the catalogue."""
    gpus = [
        make_gpu(
            "a", hours={"waiting_for_input": 6.0}, findings=(make_finding("cpu_bound", 6.0, "offline_preprocessing"),)
        ),
        make_gpu("b", hours={"waiting_for_input": 4.0}, findings=(make_finding("cpu_bound", 4.0, "loader_workers"),)),
        make_gpu("c", hours={"idle": 3.0}, findings=(make_finding("idle_gap", 3.0, "record_more"),)),
        make_gpu("d", hours={"unused": 2.0}, findings=(make_finding("unused_gpu", 2.0, "fewer_gpus"),)),
    ]
    assert [saving.title for saving in build_fleet_report(gpus, Prices()).savings] == [
        "Take work off the CPU",
        "More loader workers",
        "Look into the idle gaps",
        "Ask only for the GPUs used",
    ]


def test_a_run_across_weeks_is_divided() -> None:
    """Half of a run lies in each week; the first and the last week are partial, one without a run is there."""
    gpus = [
        make_gpu("a", started="2026-10-04T12:00", ended="2026-10-05T12:00", hours={"computing": 18.0, "idle": 6.0}),
        make_gpu("b", started="2026-10-19T00:00", ended="2026-10-19T02:00"),
        make_gpu("undated", started=None, ended=None, hours={"computing": 3.0}),
    ]
    report = build_fleet_report(gpus, Prices())
    assert [week.monday for week in report.weeks] == ["2026-09-28", "2026-10-05", "2026-10-12", "2026-10-19"]
    assert [week.use.gpu_seconds / HOUR for week in report.weeks] == [12.0, 12.0, 0.0, 2.0]
    assert [week.use.lost_gpu_seconds / HOUR for week in report.weeks] == [3.0, 3.0, 0.0, 0.0]
    assert [week.is_partial for week in report.weeks] == [True, False, False, True]
    assert report.undated_gpu_seconds == 3 * HOUR


def test_failed_runs_and_runs_without_a_gpu_are_named() -> None:
    """They are in no sum, and in the report."""
    gpus = [make_gpu("a"), make_gpu("bad", device=None, error="damaged"), make_gpu("host", device=None, hours={})]
    report = build_fleet_report(gpus, Prices())
    assert report.use.runs == 1
    assert [(failed.run.id, failed.error) for failed in report.failed] == [("bad", "damaged")]
    assert [run.id for run in report.without_gpu] == ["host"]


def test_runs_that_overlap_on_one_gpu() -> None:
    """An hour that two runs used the same card is told, since it counts twice."""
    gpus = [
        make_gpu("a", uuid="GPU-1"),
        make_gpu("b", uuid="GPU-1", started="2026-10-05T13:00", ended="2026-10-05T15:00"),
        make_gpu("c", uuid="GPU-2"),
        make_gpu("d", uuid="GPU-1", started="2026-10-05T15:00", ended="2026-10-05T16:00"),
    ]
    report = build_fleet_report(gpus, Prices())
    (overlap,) = report.overlaps
    assert (overlap.card, [run.id for run in overlap.runs], overlap.seconds) == ("GPU-1", ["a", "b"], HOUR)
    assert report.overlapping_gpu_seconds == HOUR
    assert report.gpus == 2


def test_an_overlap_of_several_counts_what_is_too_much() -> None:
    """Three runs of two hours at once on a card known by its node are two times two hours too many."""
    gpus = [make_gpu(name, node="n1") for name in "abc"] + [make_gpu("d", node="n2"), make_gpu("e", node="n2/x")]
    report = build_fleet_report(gpus, Prices())
    assert {each.card for each in report.overlaps} == {"n1 gpu:0"}
    assert (len(report.overlaps), report.overlapping_gpu_seconds) == (3, 4 * HOUR)
    assert report.gpus == 3


def test_gpus_that_no_run_names_are_not_counted() -> None:
    """Two runs on cards without a name may be on one; a single run counts its own."""
    assert build_fleet_report([make_gpu("a"), make_gpu("b")], Prices()).gpus is None
    assert build_fleet_report([make_gpu("a"), make_gpu("a", device="gpu:1")], Prices()).gpus == 2


def test_checks_that_could_not_be_made() -> None:
    """What was not assessed is said of the GPU time it concerns."""
    gpus = [make_gpu("a", not_judged=("io_bound", "ecc_error")), make_gpu("b", not_judged=("io_bound",))]
    report = build_fleet_report(gpus, Prices())
    assert [(each.kind, each.runs, each.gpu_seconds / HOUR) for each in report.unassessed] == [
        ("io_bound", 2, 4.0),
        ("ecc_error", 1, 2.0),
    ]


def test_no_run_at_all() -> None:
    """An empty fleet is empty, and no error."""
    report = build_fleet_report([], PRICES)
    assert (report.use.gpu_seconds, report.use.cost, report.weeks, report.half_lost_in) == (0.0, None, (), 0)

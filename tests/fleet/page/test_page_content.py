"""What the page on many runs says, before any format sets it."""

from collections.abc import Iterator
from dataclasses import replace

from gpureport.analysis.results import LOST_CLASSES
from gpureport.fleet.fleet_report import CardVerdict, ClassTime, FleetHealth, FleetPrices, FleetReport, Grouping, RunUse
from gpureport.fleet.formats import fleet_json
from gpureport.fleet.page.amounts import choose_amounts
from gpureport.fleet.page.anonymised_report import anonymise_fleet_report
from gpureport.fleet.page.headline import write_headline
from gpureport.fleet.page.page_building import build_page
from gpureport.fleet.page.page_model import FleetPage, PagePart
from gpureport.report.wording.display import GAP
from gpureport.report.wording.headlines import LONGEST, count_words
from tests.fleet.page import fleets
from tests.report.content_leaves import leaves
from tests.report.print_words import FORBIDDEN


def page(report: FleetReport) -> FleetPage:
    """Return the page of a report."""
    return build_page(report, command="gpureport fleet", version="0.1.0")


def part(report: FleetReport, name: str) -> PagePart:
    """Return one part of the page of a report."""
    return next(each for each in page(report).parts if each.id == name)


def texts(report: FleetReport) -> list[str]:
    """Return every text of the page of a report."""
    return [leaf.text.replace(GAP, " ") for leaf in leaves(page(report))]


def vary() -> Iterator[FleetReport]:
    """Yield reports whose headlines have longer and shorter parts."""
    month = fleets.month()
    for started in ("2026-10-01", "2026-10-14", "2025-11-30", "2026-10-31"):
        for name in LOST_CLASSES:
            for runs in (0, 1, 12, 500, 1_900):
                yield replace(month, started=fleets.micros(started), half_lost_in=runs, half_lost_class=name)
    yield replace(month, prices=FleetPrices(currency="Swiss francs of 2026"))
    yield replace(month, use=replace(month.use, unknown_gpu_seconds=month.use.gpu_seconds / 3))
    yield fleets.bare()


def test_every_headline_is_short_and_begins_with_the_share() -> None:
    """At most 16 words, per cent first, no brackets, and no word of the program."""
    for report in vary():
        sentence = write_headline(report, choose_amounts(report))
        assert count_words(sentence) <= LONGEST, sentence
        assert sentence.startswith(("31% of 24,012 GPU-hours lost", "At least 31% of", "Hardly any of")), sentence
        assert not FORBIDDEN.search(sentence), sentence


def test_long_pauses_are_not_hardly_any_loss() -> None:
    """Runs that computed half of their time, without a loss that was found, may have lost the rest."""
    bare = fleets.bare()
    classes = tuple(
        ClassTime(name=name, gpu_seconds=0.25 * fleets.HOUR, cost=None) for name in ("computing", "short_pauses")
    )
    report = replace(bare, classes=classes, use=replace(bare.use, lost_gpu_seconds=0.0))
    sentence = write_headline(report, choose_amounts(report)).replace(GAP, " ")
    assert sentence == "What was lost of 30.0 GPU-minutes is not known: short pauses took 50%"


def test_pauses_that_may_be_lost_are_named_with_their_run() -> None:
    """A run known to have lost little is not called the best of them while it paused for most of its time."""
    bare = fleets.bare()
    names = ("computing", "short_pauses", "idle")
    classes = tuple(ClassTime(name=name, gpu_seconds=fleets.HOUR, cost=None) for name in names)
    little = RunUse(
        run=fleets.run_name(1), user=None, use=fleets.use(1, 0.001, 1), largest_loss=classes[2], is_lower_bound=True
    )
    some = replace(little, run=fleets.run_name(2), use=fleets.use(1, 0.2, 1))
    report = replace(bare, classes=classes, worst_runs=(some, little), use=fleets.use(3, 1, 2))
    shown = page(replace(report, pausing_runs=(little.run, some.run)))
    assert "short pauses took 33% of the observed time, and may be waits, the longest in train-0001" in (
        shown.verdict.details[0].lower()
    )
    table = next(each.table for each in shown.parts if each.id == "worst-runs")
    assert table is not None
    assert [row.cells[1].text for row in table.rows] == ["at least 20%", "not known"]


def test_the_figure_to_quote_is_the_same_everywhere() -> None:
    """Headline, first tile and first bar state one share, one time and one cost."""
    shown = page(fleets.month())
    assert shown.verdict.sentence == (
        "31% of 24,012 GPU-hours lost in October, $18,610; half in 12 runs, mainly waiting for data"
    )
    lost, whole, *_ = shown.tiles
    assert (lost.value, lost.context, whole.value) == ("31%", f"7,444{GAP}GPU-h, $18,610", "24,012")
    assert shown.spent is not None
    assert (shown.spent.bars[0].total, shown.spent.bars[0].note) == ("24,012", "31% lost")
    assert [bar.label for bar in shown.spent.bars[1:3]] == ["Waiting for data", "Idle"]


def test_the_lead_says_what_is_left_out_and_what_comes_first() -> None:
    """Two sentences: runs and time that are in doubt, then the step and the GPUs."""
    doubt, first = page(fleets.month()).verdict.details
    assert doubt.replace(GAP, " ") == (
        "Left out: 3 runs that failed and 1 run without a GPU; 3.4% of the GPU time has no data; "
        "2.2% of the GPU time names no user; 4.00 GPU-h may be counted twice."
    )
    assert first.replace(GAP, " ") == (
        "First: more loader workers, up to 1,210 GPU-h, $3,025, in 40 runs; then pull 2 GPUs."
    )


def test_the_worst_groups_have_rows_and_the_rest_one() -> None:
    """Twenty groups, one of them the runs without the label, then all others, which have no bar."""
    users = part(fleets.month(), "by-user")
    assert users.is_open
    assert users.table is not None
    assert users.bars is not None
    names = [row.head.text for row in users.table.rows]
    assert (len(names), names[3], names[-1]) == (21, "No user recorded", "281 other users")
    assert [bool(row) for row in users.bars.rows] == [True] * 20 + [False]
    assert users.line.replace(GAP, " ") == "300 users; user000 lost most, 900 GPU-h"
    single = replace(fleets.month().groupings[0], rest=fleets.group(None, 3.0))
    rows = part(replace(fleets.month(), groupings=(single,)), "by-user").table
    assert rows is not None
    assert rows.rows[-1].head.text == "1 other user"


def test_runs_without_a_label_may_have_lost_most() -> None:
    """Then no other is said to have."""
    groups = (fleets.group(None, 400.0), fleets.group("ann", 300.0))
    month = replace(fleets.month(), groupings=(Grouping(label="user", groups=groups, rest=None),))
    assert part(month, "by-user").line.replace(GAP, " ") == "1 user; runs that name none lost most, 400 GPU-h"


def test_gpus_that_are_not_known_are_not_counted() -> None:
    """Nowhere on the page; and of two runs it says nothing that one lost half."""
    month = replace(fleets.month(), gpus=None, half_lost_in=1)
    shown = page(month)
    assert "GPU \N{MIDDLE DOT}" not in shown.quiet_line
    assert "GPUs" not in shown.quiet_line
    assert "None" not in " ".join(texts(month))
    two = replace(month, use=replace(month.use, runs=2))
    assert "half in" not in write_headline(two, choose_amounts(two))


def test_labels_that_no_run_has_share_a_part() -> None:
    """It says what to do; the first label that some run has is open, and the worst runs are in any case."""
    month = fleets.month()
    nobody = fleets.bare().groupings[0]
    none = replace(month, groupings=(nobody, replace(nobody, label="project")))
    missing = part(none, "unlabelled")
    assert (missing.title, missing.line) == ("By user and project", "not recorded in any run")
    assert "--labels" in missing.notes[0]
    assert "no run states its user" in page(none).verdict.details[0]
    assert part(none, "worst-runs").is_open
    some = replace(month, groupings=(nobody, *month.groupings[1:]))
    assert next(each.id for each in page(some).parts if each.is_open) == "by-project"
    assert part(some, "worst-runs").is_open


def test_money_that_is_not_known_is_said_once() -> None:
    """No price, a model without one, and a price without a currency are told apart; no cost is 0."""
    priceless = texts(fleets.bare())
    assert sum("No price given" in text for text in priceless) == 1
    assert not [text for text in priceless if "$" in text or text == "Cost"]
    month = fleets.month()
    unnamed = texts(replace(month, prices=FleetPrices()))
    assert sum("no currency given" in text for text in unnamed) == 1
    assert not [text for text in unnamed if "$" in text]
    model = replace(month, use=replace(month.use, cost=None, lost_cost=None))
    model = replace(model, prices=FleetPrices(currency="USD", unpriced_models=("NVIDIA A10G",)))
    assert sum("No price given for NVIDIA A10G" in text for text in texts(model)) == 1
    careful = replace(fleets.group("ann", 0.0), use=replace(fleets.use(30, 0, 2), lost_cost=None), largest_loss=None)
    row = part(replace(month, groupings=(Grouping(label="user", groups=(careful,), rest=None),)), "by-user").table
    assert row is not None
    assert [cell.text for cell in row.rows[0].cells] == ["0", "0%", "30.0", "$0", "2", "nothing lost"]
    assert page(model).verdict.sentence.startswith("31% of 24,012 GPU-hours lost in October; half in 12 runs")


def test_what_was_not_recorded_is_not_nothing() -> None:
    """Time without data is no loss of 0%, and a fleet without a check of health is not healthy."""
    bare = fleets.bare()
    blind = replace(bare, use=replace(bare.use, lost_gpu_seconds=0.0, unknown_gpu_seconds=bare.use.gpu_seconds))
    shown = page(blind)
    assert shown.verdict.sentence == "No utilisation was recorded in 30.0 GPU-minutes"
    assert shown.tiles[0].value == "not recorded"
    assert (shown.tiles[3].label, shown.tiles[3].value) == ("GPUs to pull", "not assessed")
    assert part(blind, "health").line == "3 not assessed"
    empty = replace(bare, use=fleets.use(0, 0, 0), classes=(), failed=fleets.month().failed)
    assert page(empty).verdict.sentence == "No GPU time was recorded in 3 runs"
    assert page(empty).spent is None


def test_savings_are_upper_limits() -> None:
    """Three are open, the others in a table; a step whose gain is not known says so."""
    shown = page(fleets.month())
    assert [action.gain.replace(GAP, " ") for action in shown.actions] == [
        "Up to 1,210 GPU-h, $3,025, in 40 runs",
        "Up to 860 GPU-h, $2,150, in 22 runs",
        "Up to 340 GPU-h, $850, in 210 runs",
    ]
    assert shown.actions[0].certainty.startswith("Waiting for data: one CPU core saturated; worst in train-0000")
    rest = part(fleets.month(), "savings").table
    assert rest is not None
    assert rest.columns[1] == "Up to GPU-h"
    assert [row.cells[0].text for row in rest.rows] == ["290", "180", "44.0", "Gain not known"]


def test_sick_gpus_are_named_with_what_was_seen() -> None:
    """Where to find it, what to do, each symptom with its amount and its runs; many more are counted."""
    health = part(fleets.month(), "health")
    assert health.table is not None
    first = health.table.rows[0]
    assert first.head.text == "node017, GPU 1"
    assert first.head.small.startswith("GPU-00000017-1111-2222-3333-444455556666")
    assert first.cells[0].text == "Pull"
    assert first.cells[1].text == ("Stopped responding in 2 of 14 runs; 3 uncorrectable memory errors in 5 of 14 runs")
    assert health.line == "pull 2, watch 2; 938 show no symptom, 58 not assessed"
    many = tuple(fleets.card(place, CardVerdict.WATCH) for place in range(300))
    crowd = FleetHealth(cards=many, healthy=700, not_assessed=0, unidentified_gpu_seconds=0.0)
    bounded = part(replace(fleets.month(), health=crowd), "health")
    assert bounded.table is not None
    assert len(bounded.table.rows) == 20
    assert bounded.notes == ("280 more GPUs to watch or pull: the JSON names all.",)


def test_the_trend_marks_weeks_in_part_and_weeks_without_a_run() -> None:
    """The line compares whole weeks; a week without a run is no share of 0%."""
    month = fleets.month()
    first, second, *others = month.weeks
    idle = replace(second, use=fleets.use(0, 0, 0))
    weeks = part(replace(month, weeks=(first, idle, *others)), "weeks")
    assert weeks.line == "36% lost in the week of 12 October 2026, 33% in that of 19 October 2026"
    assert [week.is_partial for week in weeks.weeks] == [True, False, False, False, True]
    assert weeks.weeks[1].words == "week of 5 October 2026: no run"
    assert weeks.weeks[1].lost_text == ""
    assert "weeks" not in [each.id for each in page(replace(month, weeks=(first,))).parts]


def test_no_sentence_has_a_word_of_the_program() -> None:
    """Headings, lines, captions and notes are plain."""
    shown = page(fleets.month())
    own = [each for entry in shown.parts for each in (entry.title, entry.line, entry.caption, *entry.notes)]
    named = [*shown.verdict.details, *(tile.context for tile in shown.tiles), *own]
    assert [text for text in named if FORBIDDEN.search(text)] == []


def test_no_name_is_left_of_an_anonymised_report() -> None:
    """People, projects, jobs, nodes, GPUs and runs have numbers or hashes; the same name has the same one."""
    month = fleets.month()
    hidden = anonymise_fleet_report(replace(month, selection="user=user000"))
    text = fleet_json.render(hidden)
    for name in ("user0", "project-", "batch-", "node0", "train-", "GPU-00000017", "resnet", "0.csv", "0001abc"):
        assert name not in text, name
    assert hidden.groupings[0].groups[0].name == "user_1"
    assert hidden.worst_runs[1].user == "user_2"
    assert hidden.groupings[0].groups[3].name is None
    assert (hidden.use, hidden.classes, hidden.health.healthy) == (month.use, month.classes, month.health.healthy)
    model = Grouping(label="model", groups=(fleets.group("NVIDIA H100", 3.0),), rest=None)
    assert anonymise_fleet_report(replace(month, groupings=(model,))).groupings[0].groups[0].name == "NVIDIA H100"


def test_names_are_cleaned() -> None:
    """No escape code, no line break, and no endless name comes into a text."""
    for text in texts(fleets.hostile()):
        assert text.isprintable(), text
        assert len(text) < 700, text


def test_a_step_that_looks_for_a_cause_promises_no_saving() -> None:
    """The lead says what was lost, the list that its cause is not known."""
    probe = fleets.saving("record_more", "Record what shows the cause", 1_210, 40, "idle_gap")
    shown = page(replace(fleets.month(), savings=(probe,)))
    assert shown.verdict.details[1].replace(GAP, " ") == (
        "First: record what shows the cause, 1,210 GPU-h, $3,025 lost in 40 runs; then pull 2 GPUs."
    )
    assert shown.actions[0].gain.replace(GAP, " ") == "Cause of 1,210 GPU-h, $3,025 not known, in 40 runs"

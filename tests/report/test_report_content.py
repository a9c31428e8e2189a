"""The content of a report, before any format."""

from dataclasses import replace

import pytest

from gpureport import testing
from gpureport.analysis.results import Pauses
from gpureport.analysis.rules.missing_metrics import count_of, length_of, not_recorded, share_of, too_short
from gpureport.findings import Amount
from gpureport.report import FORMATS, build, render
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP
from gpureport.testing import Analysis, LogGap, NotJudged, Recording, Severity, Work, analyze
from tests.report import examples

GAPS = tuple(examples.idle_gap(f"gpu:{gpu}", at, at + 20) for gpu in (0, 1) for at in (100, 200, 300))


def report(*runs: tuple[Recording, Analysis], price: float | None = None) -> Report:
    """Return the content for some runs."""
    return build(runs, title=None, command="gpureport report a.csv", gpu_hour_price=price, version="0.1.0")


def plain(text: str) -> str:
    """Return text with ordinary spaces."""
    return text.replace(GAP, " ")


def test_the_verdict_says_what_was_lost() -> None:
    """The worst finding is the headline; the share of the GPU time follows."""
    content = report(examples.pair(examples.run(), GAPS))
    assert plain(content.verdict.sentence) == "Both GPUs sit idle for 1 min."
    assert plain(content.verdict.details[0]) == "10% of 20.0 GPU-min was lost: all of it idle."
    assert content.verdict.details[1] == "First: look into the idle gaps."


def test_four_tiles() -> None:
    """Of a run with a finding: GPU time computing, lost, the hottest GPU and peak memory."""
    tiles = report(examples.pair(examples.run(), GAPS, examples.NOT_JUDGED), price=2.5).tiles
    assert [tile.label for tile in tiles] == ["GPU time computing", "GPU time lost", "Hottest GPU", "Peak memory"]
    assert plain(tiles[0].context) == "Of 20.0 GPU-min; lost 10%"
    assert (tiles[1].value, plain(tiles[1].unit), tiles[1].context) == ("10%", "of 20.0 GPU-min", "Idle 10%")


def test_nothing_found_says_how_much_was_looked_for() -> None:
    """A clean run never reads as healthy when kinds were not judged."""
    content = report(examples.pair(examples.run(), (), examples.NOT_JUDGED, idle=0.0))
    assert plain(content.verdict.sentence) == "Healthy: both GPUs computed 100% of the time; no problems found."
    assert content.verdict.details[1].endswith(" checks were assessed; the other 2 need more data.")


def test_nothing_judged_at_all() -> None:
    """When every kind is missing, the verdict says so instead of finding no loss."""
    info = examples.run()
    runs = [(examples.recording(info), examples.analysis(info, not_judged=examples.NOT_JUDGED, idle=0.0))]
    kinds = ("cpu_bound", "io_bound")
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0", kinds=kinds)
    assert content.verdict.sentence == "Nothing could be assessed with this data."
    assert content.judgement.sentence == "No check could be made with this data."


def test_a_low_utilisation_is_a_loss_too() -> None:
    """The unused share of stretches that were used too little is part of what was lost."""
    recording, analysis = examples.pair(examples.run())
    times = tuple(replace(time, seconds=(("computing", 300.0), ("low_use", 300.0))) for time in analysis.gpu_time)
    content = report((recording, replace(analysis, gpu_time=times)))
    assert plain(content.verdict.sentence) == "50% of the GPU time was lost, all of it low use."


def test_params_and_tags_are_shown() -> None:
    """What a run was configured and labelled with stands beside where it came from."""
    info = examples.run()
    content = report(
        examples.pair(replace(info, params=(("batch", "64"), ("amp", "\x1b[31mon")), tags=(("team", "x"),)))
    )
    facts = {fact.name: fact.text for fact in content.quality[0].facts}
    assert (facts["Params"], facts["Tags"]) == ("batch = 64, amp = on", "team = x")


def test_without_work_shares_can_mislead() -> None:
    """The warning goes away when the work is known, and GPU-hours are set in relation to it."""
    assert any("Pass the work done" in line for line in report(examples.pair(examples.run())).verdict.notes)
    content = report(examples.pair(examples.run(work=Work(amount=2000, unit="steps"))))
    assert not any("Pass the work done" in line for line in content.verdict.notes)


def test_findings_of_one_kind_are_one_card() -> None:
    """Count, total and longest; every stretch listed in order."""
    (card,) = report(examples.pair(examples.run(), GAPS)).findings
    assert (card.id, card.title, card.count) == ("F1", "Idle gaps, both GPUs", 6)
    assert plain(card.summary).startswith(
        "3 gaps on both GPUs, 2 min of GPU time, the longest 20 s. Largest: GPU 0 was idle"
    )
    assert [stretch.start for stretch in card.occurrences] == [100, 100, 200, 200, 300, 300]
    assert card.recommendations == ("Prefetch the next batch while the GPU computes.",)
    assert card.lost_seconds == 120


def test_a_kind_with_two_causes_names_them() -> None:
    """Two cards of one kind can be told apart."""
    other = replace(GAPS[0], cause="checkpoint")
    titles = [card.title for card in report(examples.pair(examples.run(), (*GAPS[1:3], other))).findings]
    assert titles == ["Idle gaps (cause: not named), GPU 0", "Idle gaps (cause: checkpoint), GPU 0"]


def test_long_lists_are_cut_and_say_so() -> None:
    """No more than a hundred stretches are listed; the count stays true."""
    many = tuple(examples.idle_gap("gpu:0", at, at + 1) for at in range(0, 500, 2))
    (card,) = report(examples.pair(examples.run(), many)).findings
    assert (len(card.occurrences), card.omitted, card.count) == (100, "and 150 more", 250)


def test_cards_are_sorted_by_loss_and_linked() -> None:
    """What follows from a finding comes right after it, whatever it lost, and both name each other."""
    heat = examples.throttling("gpu:1", 0, 600)
    gaps = replace(examples.idle_gap("gpu:0", 100, 400), root=heat.fingerprint)
    other = examples.idle_gap("gpu:0", 450, 590)
    cards = report(examples.pair(examples.run(), (gaps, other, heat))).findings
    assert [(card.id, card.kind, card.explains, card.root) for card in cards] == [
        ("F1", "thermal_throttle", ("F2",), ""),
        ("F2", "idle_gap", (), "F1"),
        ("F3", "idle_gap", (), ""),
    ]


def test_time_is_not_counted_twice() -> None:
    """The card of a consequence says whose time it is, and it is no open finding of its own."""
    heat = examples.throttling("gpu:1", 0, 600)
    gaps = replace(examples.idle_gap("gpu:1", 100, 400), root=heat.fingerprint)
    content = report(examples.pair(examples.run(), (gaps, heat)))
    root, other = content.findings
    apart = replace(examples.idle_gap("gpu:0", 100, 400), root=heat.fingerprint)
    assert "counted" not in report(examples.pair(examples.run(), (apart, heat))).findings[1].lost
    assert plain(root.lost).startswith("up to 2.00 GPU-min")
    assert plain(other.lost).endswith("of the run), counted under F1")


def test_a_root_that_lost_no_time_itself_says_what_follows() -> None:
    """The loss of a lost GPU is that of the gaps after it."""
    lost = replace(examples.throttling("gpu:0", 0, 10), kind="gpu_lost", lost_gpu_seconds=None)
    gaps = replace(examples.idle_gap("gpu:0", 10, 590), root=lost.fingerprint)
    small = examples.idle_gap("gpu:1", 10, 100)
    cards = report(examples.pair(examples.run(), (small, gaps, lost))).findings
    assert [card.kind for card in cards] == ["gpu_lost", "idle_gap", "idle_gap"]
    assert plain(cards[0].lost).endswith("of the run) through F2")


def test_a_warning_below_a_fact_stays_open() -> None:
    """What calls for action is counted even where its root is for information only."""
    fact = replace(examples.throttling("gpu:0", 0, 600), severity=Severity.INFO)
    gaps = replace(examples.idle_gap("gpu:0", 10, 300), root=fact.fingerprint)
    content = report(examples.pair(examples.run(), (fact, gaps)))
    assert [card.severity for card in content.findings if card.is_open] == ["info", "warning"]


def test_evidence_in_words() -> None:
    """Value, limit and the limit's origin."""
    (card,) = report(examples.pair(examples.run(), GAPS[:1])).findings
    line = card.evidence[1]
    assert (line.quantity, plain(line.observed), plain(line.limit)) == ("duration", "20 s", "≥ 5 s")
    assert line.source == "literature: a published study"


def test_outliers_are_said_in_words() -> None:
    """A GPU that differs from its peers is flagged with what the others show."""
    info = examples.run(gpus=5)
    hot = tuple(examples.statistics(gpu.id, celsius=87.0 if gpu.index == 3 else 75.0) for gpu in info.gpus)
    gpus = report((examples.recording(info), examples.analysis(info, statistics_of=hot))).gpus[0]
    assert [plain(text) for text in gpus.outliers] == [
        "GPU 3 differs from the others: highest temperature 87 °C (others 75 °C)."
    ]
    flagged = [(row.head.text, cell.text) for row in gpus.table.rows for cell in row.cells if cell.flagged]
    assert [(plain(name), plain(text)) for name, text in flagged] == [("GPU 3", "87 °C")]


def test_one_sample_tells_no_outlier() -> None:
    """Eight GPUs at one moment are neither alike nor apart."""
    made = examples.run(gpus=8, seconds=0)
    gpus = report((examples.recording(made), examples.analysis(made))).gpus[0]
    assert (gpus.outliers, gpus.same) == ((), "Of one sample of each GPU none can be said to stand apart.")


def test_what_one_sample_does_not_tell_was_not_left_unrecorded() -> None:
    """Idle time and energy take two samples, whatever was recorded."""
    made = examples.run(seconds=0)
    bare = tuple(replace(examples.statistics(gpu.id, idle=None), energy_joules=None) for gpu in made.gpus)
    (gpus,) = report((examples.recording(made), examples.analysis(made, statistics_of=bare))).gpus
    assert gpus.table.note == "Not recorded, or not told by a single sample: idle share and energy."


def test_columns_without_a_value_are_a_sentence() -> None:
    """What no GPU of any run has is said once under the first table; what one run has keeps its column in all."""
    info = examples.run()
    found = [replace(examples.statistics(gpu.id), memory_peak_bytes=None, energy_joules=None) for gpu in info.gpus]
    bare = [replace(each, metrics=each.metrics[:1], memory_headroom_ratio=None) for each in found]
    runs = [(examples.recording(info), examples.analysis(info, statistics_of=tuple(one))) for one in (bare, found)]
    (alone,) = report(runs[0]).gpus
    assert alone.table.columns == ("GPU", "Utilisation mean", "Use up to 5%")
    assert all(len(row.cells) == len(alone.table.numeric) == 2 for row in alone.table.rows)
    assert alone.table.note == (
        "Not recorded: median SM clock, highest temperature, mean power, energy, peak memory and free memory."
    )
    first, second = report(*runs).gpus
    assert "Temperature max" in first.table.columns
    assert first.table.columns == second.table.columns
    assert (first.table.note, second.table.note) == ("Not recorded in any run: energy and peak memory.", "")


def test_a_table_of_gpus_is_never_without_a_column() -> None:
    """Where nothing is known of a GPU, one column says so."""
    info = examples.run()
    (gpus,) = report((examples.recording(info), replace(examples.analysis(info), statistics=()))).gpus
    assert gpus.table.columns == ("GPU", "Utilisation mean")
    assert [cell.text for row in gpus.table.rows for cell in row.cells] == ["not recorded"] * 2


def test_two_gpus_have_no_outlier() -> None:
    """Of two, nobody can say which is the odd one."""
    info = examples.run()
    found = tuple(examples.statistics(gpu.id, celsius=60.0 + 20 * (gpu.index or 0)) for gpu in info.gpus)
    gpus = report((examples.recording(info), examples.analysis(info, statistics_of=found))).gpus[0]
    assert (gpus.outliers, gpus.same) == ((), "With fewer than 3 GPUs none can be said to stand apart.")


def test_pauses_too_short_for_gaps_are_told() -> None:
    """What the samples do not cover though there is no gap has its length, and how it comes about."""
    recording, analysis = examples.pair(examples.run())
    pauses = Pauses(count=5, longest_seconds=0.5, seconds=0.8)
    quality = report((recording, replace(analysis, pauses=pauses))).quality[0]
    (coverage,) = (plain(fact.text) for fact in quality.facts if fact.name == "Coverage")
    assert coverage.endswith("lies near a sample; 0.8 s does not: 5 pauses of up to 0.5 s, too short for a gap")


def test_every_line_is_accounted_for() -> None:
    """Rejected lines, gaps and absent values are told with their reasons."""
    quality = report(examples.pair(examples.with_gap(examples.run()))).quality[0]
    facts = {fact.name: plain(fact.text) for fact in quality.facts}
    assert facts["Lines"] == "1,146 read = 1,142 kept as samples + 2 rejected + 1 header + 1 driver message"
    assert facts["Rejected"] == "2 lines: truncated line (first: line 811)"
    assert facts["Longest gap"] == "1 min, GPU 0 at 0:05:00; 1 gap in all"
    assert facts["Absent values"] == "GPU fan: 1,142 values (N/A)"
    assert facts["Coverage"] == "95% of the time from first to last sample lies near a sample"
    assert quality.notes == ("Times are the local time of the recording machine.",)


def test_what_could_not_be_judged_is_grouped_by_reason() -> None:
    """One line a reason, with what to record."""
    (line,) = report(examples.pair(examples.run(), (), examples.NOT_JUDGED)).judgement.lines
    assert line.kinds == ("Waiting for data: CPU saturated", "Waiting for data: storage")
    assert line.recording == "a log of the CPU"


def _short(name: str, reason: str, amounts: tuple[Amount, ...]) -> tuple[Recording, Analysis]:
    missing = NotJudged(
        kind="low_use", device=None, template=reason, amounts=amounts, recording="a log of at least 10 min"
    )
    return examples.pair(examples.run(name), (), (missing,))


@pytest.mark.parametrize(
    ("reason", "before", "after", "said"),
    [
        ("the job lasts only {}", length_of(52), length_of(65), ["The job lasts only 52 s to 1 min 5 s"]),
        ("{}, fewer than 20", count_of(19, "sample"), count_of(8, "sample"), ["8 to 19 samples, fewer than 20"]),
        ("{}, fewer than 20", count_of(1, "sample"), count_of(8, "sample"), ["1 to 8 samples, fewer than 20"]),
        ("only {} of 2 min", share_of(0.095), share_of(0.1), ["Only 9.5% to 10% of 2 min"]),
    ],
)
def test_reasons_that_differ_in_an_amount_are_one_line(
    reason: str, before: Amount, after: Amount, said: list[str]
) -> None:
    """With the least and the most of it."""
    content = report(_short("a", reason, (before,)), _short("b", reason, (after,)))
    assert [plain(line.reason) for line in content.judgement.lines] == said
    assert [line.where for line in content.judgement.lines] == [""]


def test_reasons_without_amounts_stay_apart() -> None:
    """A number that names something is no amount; what one recording answers is one line."""
    content = report(_short("a", "GPU 0 was lost", ()), _short("b", "GPU 1 was lost", ()))
    assert [line.reason for line in content.judgement.lines] == ["GPU 0 was lost; GPU 1 was lost"]
    assert [line.where for line in content.judgement.lines] == [""]


def test_checks_that_one_recording_answers_are_one_line() -> None:
    """What is missing of the host in one list, and of runs too short the longest that is needed."""
    short = [too_short(kind, 30.0, needed) for kind, needed in (("mem_leak", 60.0), ("oversized_gpu", 600.0))]
    host = [
        not_recorded("cpu_bound", "gpu:0", "cpu_utilization_ratio"),
        not_recorded("io_bound", "gpu:0", "cpu_iowait_ratio"),
    ]
    first, second = report(examples.pair(examples.run(), (), (*short, *host))).judgement.lines
    assert (len(first.kinds), plain(first.recording)) == (
        2,
        "a log of at least 1 min; for all of them, at least 10 min",
    )
    assert second.reason == "Not recorded: CPU utilisation and CPU waiting for I/O"
    assert len(second.kinds) == 2


def test_times_have_an_offset_only_with_a_zone() -> None:
    """Without a zone the clock is said to be the recording machine's."""
    local = report(examples.pair(examples.run())).timeline[0].caption
    assert "starts 2026-03-14 09:26:53, local time of the recording machine" in local
    zoned = report(examples.pair(examples.run(timezone="Europe/Berlin"))).timeline[0].caption
    assert "starts 2026-03-14 10:26:53+0100, Europe/Berlin" in zoned


def test_no_gpu_was_recorded() -> None:
    """A host log alone is reported without inventing GPU time."""
    content = report(examples.pair(examples.run(gpus=0, seconds=5), (), examples.NOT_JUDGED))
    assert content.verdict.sentence == "No GPU was recorded, so nothing can be said about GPU time."
    assert [tile.value for tile in content.tiles[:3]] == ["not recorded"] * 3
    assert content.gpu_time == ()


def test_a_log_that_changes_its_pace() -> None:
    """The row of data quality names each interval, not only that of most rows."""
    recorded = testing.recording(util=[50.0] * 330, times=[*range(300), *range(300, 600, 10)])
    recorded = replace(recorded, run=replace(recorded.run, interval=1.0))
    facts = {fact.name: plain(fact.text) for fact in report((recorded, analyze(recorded))).quality[0].facts}
    assert facts["Sampling"] == "A sample every 1 s, in part every 10 s."
    assert "Longest gap" not in facts


def test_of_sound_data_little_is_said() -> None:
    """Nothing is lost, there is no gap; what is not wrong is not named."""
    (quality,) = report(examples.pair(examples.run())).quality
    facts = {fact.name: plain(fact.text) for fact in quality.facts}
    assert facts["Coverage"] == "No gap."
    assert facts["Lines"].startswith("Complete: 1")
    assert not {"Rejected", "Longest gap", "Absent values", "Clock", "Readings"} & set(facts)


def test_a_single_sample() -> None:
    """One row makes a report that says it is too short."""
    info = replace(examples.run(gpus=1, seconds=0), interval=None)
    content = report((examples.recording(info), examples.analysis(info, idle=0.0)))
    assert content.verdict.sentence == "Only one sample: too little to assess."
    assert [tile.value for tile in content.tiles[:3]] == ["cannot be told", "70\N{NO-BREAK SPACE}°C", "83.3"]
    assert content.timeline[0].caption.startswith("a single sample; starts ")
    assert {fact.name: fact.text for fact in content.quality[0].facts}["Sampling"] == "One sample in all."


def test_bars_add_up() -> None:
    """A run with several GPUs has a bar for all and one for each."""
    content = report(examples.pair(examples.run()))
    assert [(bar.label, bar.whole) for bar in content.gpu_time] == [
        ("all GPUs", True),
        ("GPU 0", False),
        ("GPU 1", False),
    ]
    for bar in content.gpu_time:
        assert sum(part.ratio for part in bar.parts) == pytest.approx(1.0)


def test_limits_of_the_rules_are_in_the_method() -> None:
    """Every limit is printed with its origin, and the input with its hash."""
    method = report(examples.pair(examples.run())).method
    assert method.command == "gpureport report a.csv"
    assert any(row.head.text.startswith("Idle gaps") for row in method.thresholds.rows)
    assert {row.cells[2].text for row in method.thresholds.rows} <= {"vendor", "literature", "pragmatic", "settings"}
    assert method.inputs.rows[0].cells[1].small == f"sha256 {'ab' * 32}"


def test_one_gap_seen_by_every_device_is_one() -> None:
    """The host's log may stop with those of the GPUs."""
    info = examples.with_gap(examples.run())
    gaps = tuple(LogGap(device=device, start=examples.at(300), end=examples.at(360)) for device in ("gpu:0", "gpu:1"))
    later = LogGap(device="gpu:1", start=examples.at(500), end=examples.at(520))
    info = replace(info, quality=replace(info.quality, gaps=(*gaps, later)))
    facts = {fact.name: plain(fact.text) for fact in report(examples.pair(info)).quality[0].facts}
    assert facts["Longest gap"] == "1 min, both GPUs at 0:05:00; 2 gaps in all"


def test_gpus_with_gaps_of_their_own_share_none() -> None:
    """Findings that do not overlap are counted one by one, in GPU time."""
    apart = (examples.idle_gap("gpu:0", 100, 120), examples.idle_gap("gpu:1", 300, 340))
    (card,) = report(examples.pair(examples.run(), apart)).findings
    assert plain(card.summary).startswith("2 gaps, 1 min of GPU time, the longest 40 s.")


def test_clock_times_are_rounded_like_elapsed_ones() -> None:
    """Half a second later is the next second, on both."""
    info = examples.run()
    late = replace(info, started=info.started + 600_000, ended=info.ended + 600_000)
    assert "starts 2026-03-14 09:26:54" in report(examples.pair(late)).timeline[0].caption


@pytest.mark.parametrize("extension", FORMATS)
def test_mixed_gpus_have_a_report_in_every_format(extension: str) -> None:
    """Nothing is judged of rows that several GPUs share, and every figure says that it cannot be told."""
    made = testing.recording(util=testing.steps((97, 300)), power=300, memory=40)
    run = replace(made, run=replace(made.run, devices=tuple(replace(gpu, mixed=True) for gpu in made.run.devices)))
    content = report((run, analyze(run)))
    assert render(content, extension)
    assert content.verdict.sentence == "Nothing could be assessed with this data."
    told = {tile.label: (tile.value, tile.context) for tile in content.tiles}
    assert told["GPU time computing"] == ("cannot be told", "Rows of several GPUs may be mixed")

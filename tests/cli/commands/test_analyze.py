"""`gpureport analyze` and `gpureport report`: text, JSON, files."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.written_logs import HEADER, log, row, stamp


def with_gap(zone: str = "") -> str:
    """Return a log of five minutes with half a minute of idleness in the middle."""
    del zone
    rows = [row(second, util=0 if 120 <= second < 150 else 95) for second in range(300)]
    return "\n".join([HEADER, *rows, ""])


def test_json_follows_its_schema(gpureport: Program, tmp_path: Path) -> None:
    """The document holds what the contract names, in base units, and its lines add up."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    document = json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)
    (run,) = document["runs"]
    assert document["schema"] == "gpureport.analysis/1"
    assert {"run", "quality", "phases", "statistics", "gpu_time", "findings", "not_judged"} <= run.keys()
    quality = run["quality"]
    parts = [quality["rows_kept"], quality["headers"], quality["noise"], quality["events"]]
    assert quality["lines"] == sum(parts) + sum(entry["rows"] for entry in quality["rejected"])
    utilisation = run["statistics"]["gpu:0"]["gpu_utilization_ratio"]
    assert {"mean", "sample_mean", "p5", "p50", "p95", "max", "seconds", "below"} <= utilisation.keys()
    assert sum(run["gpu_time"]["gpu:0"].values()) == 299.0
    (gap,) = [finding for finding in run["findings"] if finding["kind"] == "idle_gap"]
    assert (gap["gpu"], gap["device"], gap["severity"] in {"info", "warning", "problem"}) == (0, "gpu:0", True)
    assert gap["start"].startswith("2026-03-14T09:0")
    assert gap["evidence"][0].keys() >= {"metric", "statistic", "observed", "threshold", "provenance"}
    assert "cpu_bound" in {entry["kind"] for entry in run["not_judged"]}


def test_times_carry_an_offset_only_when_the_zone_is_known(gpureport: Program, tmp_path: Path) -> None:
    """Without --tz times are as written; with it they name their offset and the moment is placed."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    naive = json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)["runs"][0]["run"]
    zoned = json.loads(gpureport("analyze", "gpu.csv", "--tz", "Asia/Kolkata", "--format", "json").out)
    assert (naive["started"], naive["timezone"]) == ("2026-03-14T09:00:00.000", None)
    assert zoned["runs"][0]["run"]["started"] == "2026-03-14T09:00:00.000+05:30"


def test_kinds_are_selected_and_ignored(gpureport: Program, tmp_path: Path) -> None:
    """--select keeps only what it names, --ignore leaves it out."""
    (tmp_path / "gpu.csv").write_text(with_gap())

    def kinds(*options: str) -> set[str]:
        document = json.loads(gpureport("analyze", "gpu.csv", "--format", "json", *options).out)
        return {finding["kind"] for finding in document["runs"][0]["findings"]}

    assert kinds("--select", "idle_gap") == {"idle_gap"}
    assert "idle_gap" not in kinds("--ignore", "idle_gap")


def test_settings_change_a_threshold_and_say_so(gpureport: Program, tmp_path: Path) -> None:
    """A threshold from gpureport.toml is used and its provenance is the file."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nshortest = 45\n")
    findings = json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)["runs"][0]["findings"]
    assert [finding for finding in findings if finding["kind"] == "idle_gap"] == []


def test_a_setting_that_is_gone_is_ignored_and_named(gpureport: Program, tmp_path: Path) -> None:
    """A settings file of an earlier version still works: the limit keeps its default, in one line on standard error."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    plain = gpureport("analyze", "gpu.csv", "--format", "json")
    (tmp_path / "gpureport.toml").write_text("[rules.idle_gap]\nbridge = 45\nhang = 5\n")
    outcome = gpureport("analyze", "gpu.csv", "--format", "json")
    assert (outcome.code, outcome.out) == (plain.code, plain.out)
    assert "gpureport.toml:2: bridge, hang in [rules.idle_gap] can no longer be set; the default holds." in outcome.err


def test_a_price_gives_a_cost(gpureport: Program, tmp_path: Path) -> None:
    """With a price the run has a cost, for all its time and for its idle time."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    document = json.loads(gpureport("analyze", "gpu.csv", "--gpu-hour-price", "3.6", "--format", "json").out)
    cost = document["runs"][0]["cost"]
    assert (cost["price"], round(cost["total"], 3)) == (3.6, 0.299)
    assert 0.02 < cost["idle"] < 0.04
    assert cost["currency"] is None


@pytest.mark.parametrize(
    ("price", "named"), [("3.6 EUR", "EUR"), ("3.6 $", "$"), ("3.6", "CHF")], ids=["code", "sign", "settings"]
)
def test_a_price_names_its_currency_or_takes_that_of_the_settings(
    gpureport: Program, tmp_path: Path, price: str, named: str
) -> None:
    """A table of costs is handed over with it; the option wins over the settings."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    (tmp_path / "gpureport.toml").write_text('[prices]\ncurrency = "CHF"\ndate = 2026-03-01\n')
    document = json.loads(gpureport("analyze", "gpu.csv", "--gpu-hour-price", price, "--format", "json").out)
    cost = document["runs"][0]["cost"]
    assert (cost["price"], cost["currency"]) == (3.6, named)


def test_counters_of_a_log_are_counted(gpureport: Program, tmp_path: Path) -> None:
    """At 30 s and without a bit in any row, 12 s of heat that the driver counted are found and in the ledger."""
    header = (
        "timestamp, index, utilization.gpu [%], clocks_event_reasons.active, "
        "clocks_event_reasons_counters.sw_thermal_slowdown [us]"
    )
    rows = [
        f"2026/03/14 09:{row // 2:02}:{row % 2 * 30:02}.000, 0, 98 %, 0x0, {7_000_000 + 12_000_000 * (row > 9)} us"
        for row in range(40)
    ]
    (tmp_path / "gpu.csv").write_text("\n".join([header, *rows]) + "\n")
    (run,) = json.loads(gpureport("analyze", "gpu.csv", "--format", "json").out)["runs"]
    (heat,) = [finding for finding in run["findings"] if finding["kind"] == "thermal_throttle"]
    assert (heat["start"], heat["end"]) == ("2026-03-14T09:04:30.000", "2026-03-14T09:05:00.000")
    counted = {entry["reason"]: entry["counted"] for entry in run["throttle_ledger"]}
    assert (counted["sw_thermal_slowdown"]["seconds"], counted["hw_slowdown"]) == (12, None)


def test_prices_of_the_settings_give_a_cost(gpureport: Program, tmp_path: Path) -> None:
    """A rate that fits a label of the run, with its currency, in text and JSON; without one, a line how to state it."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    assert "no price is stated: give --gpu-hour-price" in " ".join(
        gpureport("analyze", "gpu.csv", "--detail", "full").out.split()
    )
    (tmp_path / "gpureport.toml").write_text(
        '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = 9\n[[prices.rate]]\nspot = true\ngpu_hour = 3.6\n'
    )
    document = json.loads(gpureport("analyze", "gpu.csv", "--tag", "spot=yes", "--format", "json").out)
    cost = document["runs"][0]["cost"]
    assert (cost["price"], cost["currency"], round(cost["total"], 3)) == (3.6, "EUR", 0.299)
    text = " ".join(gpureport("analyze", "gpu.csv", "--carbon-intensity", "400", "--detail", "full").out.split())
    assert "€9.00 (gpureport.toml:4); prices of 2026-03-01" in text
    assert "at 400 g/kWh (--carbon-intensity)" in text


def test_a_price_that_is_none_is_named_with_its_line(gpureport: Program, tmp_path: Path) -> None:
    """Settings are checked before anything is shown."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    (tmp_path / "gpureport.toml").write_text('[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = "cheap"\n')
    outcome = gpureport("analyze", "gpu.csv")
    assert outcome.code == 2
    assert "gpureport.toml:4: gpu_hour must be a number, not 'cheap'" in outcome.err


def test_text_is_plain_when_piped(gpureport: Program, tmp_path: Path) -> None:
    """Text for people fits 80 columns and holds no escape codes; a command to be copied is never broken."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    outcome = gpureport("analyze", "gpu.csv", "--detail", "full")
    assert (outcome.code, outcome.err) == (0, "")
    assert "\x1b" not in outcome.out
    commands = [line for line in outcome.out.splitlines() if "nvidia-smi --" in line]
    assert max(len(line) for line in outcome.out.splitlines() if line not in commands) <= 80
    (command,) = [line.strip() for line in commands]
    assert command.startswith("nvidia-smi --query-gpu=timestamp,index,")
    assert command.endswith(" --format=csv -l 1 -f gpu.csv")
    assert len(command) > 80
    assert "idle" in outcome.out


def test_detail_adds_steps_and_answers(gpureport: Program, tmp_path: Path) -> None:
    """Short text is one screen, full text has the steps and the answer of every kind; both fit 80 columns."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    brief, full = gpureport("analyze", "gpu.csv"), gpureport("analyze", "gpu.csv", "--detail", "full")
    assert (brief.code, full.code) == (0, 0)
    assert "   Step 1          " not in brief.out
    assert len(brief.out.splitlines()) <= 30
    assert brief.out.splitlines()[-1].endswith("Full report: gpureport report gpu.csv -o report.html")
    assert max(map(len, brief.out.splitlines())) <= 80
    assert "   Step 1          " in full.out
    assert "  not assessed: " in full.out
    assert "  not assessed: " not in brief.out
    lines = [line for line in full.out.splitlines() if "nvidia-smi --" not in line]
    assert max(map(len, lines)) <= 80


def test_several_files_from_one_analysis(gpureport: Program, tmp_path: Path) -> None:
    """Each -o writes one file by its extension, folders included."""
    (tmp_path / "a.csv").write_text(with_gap())
    (tmp_path / "b.csv").write_text(log(300))
    outcome = gpureport("report", "a.csv", "b.csv", "-o", "out/r.html", "-o", "out/r.json", "-o", "out/r.txt")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.endswith(" → out/r.html, out/r.json, out/r.txt\n")
    assert outcome.err.count("\n") == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["r.html", "r.json", "r.txt"]
    assert (tmp_path / "out" / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_report_does_not_name_its_output(gpureport: Program, tmp_path: Path) -> None:
    """The same input gives the same bytes, wherever they are written."""
    (tmp_path / "a.csv").write_text(with_gap())
    gpureport("report", "a.csv", "-o", "one.html")
    gpureport("report", "a.csv", "-o", "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_standard_output_is_a_place_too(gpureport: Program, tmp_path: Path) -> None:
    """`-o -` is text on standard output."""
    (tmp_path / "a.csv").write_text(with_gap())
    outcome = gpureport("report", "a.csv", "-o", "-")
    assert outcome.code == 0
    assert outcome.out


def test_the_demo_needs_nothing(gpureport: Program, tmp_path: Path) -> None:
    """The demo runs in an empty folder, tells a story, and writes its report when asked."""
    outcome = gpureport("demo", "-o", "report.html")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert "Sample logs, recorded" in outcome.out
    assert "  1-starved " in outcome.out
    assert lines[-1].endswith("Full report: gpureport demo -o report.html")
    assert "Try it on your log: gpureport analyze gpu.csv" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    full = gpureport("demo", "--detail", "full")
    assert (full.code, "MEANS OF STEPS" in full.out) == (0, True)


def test_the_python_interface(tmp_path: Path) -> None:
    """`read` and `analyze` do from Python what the command does."""
    import gpureport  # noqa: PLC0415 - the fixture of this name is not wanted here

    (tmp_path / "gpu.csv").write_text(with_gap())
    (recording,) = gpureport.read(tmp_path / "gpu.csv")
    assert "idle_gap" in {finding.kind for finding in gpureport.analyze(recording).findings}
    assert len(recording.to_pandas()) == 300


def test_a_part_of_a_log_and_of_a_stored_run_are_judged_alike(gpureport: Program, tmp_path: Path) -> None:
    """--from and --to leave out the idle half minute, whether the log is read or was stored."""
    (tmp_path / "gpu.csv").write_text(with_gap())
    gpureport("ingest", "gpu.csv", "--name", "whole")
    for source in ("gpu.csv", "whole"):
        document = json.loads(gpureport("analyze", source, "--from", "150s", "--format", "json").out)
        (run,) = document["runs"]
        assert run["run"]["started"] == "2026-03-14T09:02:30.000"
        assert "idle_gap" not in {finding["kind"] for finding in run["findings"]}
        rejected = [(each["reason"], each["rows"], each["first_line"]) for each in run["quality"]["rejected"]]
        assert rejected == [("outside --from and --to", 150, None)]


def test_several_runs_say_more_together(gpureport: Program, tmp_path: Path) -> None:
    """Findings over several runs stand beside those of each; a single run has none."""
    fields = ("timestamp", "index", "name", "utilization.gpu [%]", "memory.used [MiB]", "memory.total [MiB]")
    for size, peak in ((8, 9), (16, 12), (32, 18)):
        held = [min(second, 100) * peak * 10 for second in range(300)]
        rows = [f"{stamp(at)}, 0, NVIDIA L4, 95 %, {memory} MiB, 23034 MiB" for at, memory in enumerate(held)]
        (tmp_path / f"{size}.csv").write_text("\n".join([", ".join(fields), *rows, ""]))
        gpureport("ingest", f"{size}.csv", "--name", f"b{size}", "--param", f"batch_size={size}")
    alone = json.loads(gpureport("analyze", "b8", "--format", "json").out)
    several = json.loads(gpureport("analyze", "b8", "b16", "b32", "--format", "json").out)
    assert alone["across_runs"] == []
    assert {"gpu_kinds", "batch_size"} <= {finding["kind"] for finding in several["across_runs"]}
    assert all(finding["summary"] and finding["steps"] for finding in several["across_runs"])

"""Pages of a history: static, small, the same bytes each time, and nothing is left out."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site import site_writing
from gpureport.testing import Check, CheckOutcome
from tests.nightly.made import USUAL, day, night, nights, part, year

MEASURED = "gpu_utilization_ratio"


class Tags(HTMLParser):
    """Collects the tags of a page and where its links lead."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag."""
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


def report(shown: NightlyRecord) -> bytes | None:
    """Return a page for a night."""
    return f"<!doctype html><title>{shown.page}</title>".encode()


def build(folder: Path, history: list[NightlyRecord]) -> dict[str, bytes]:
    """Build a site; return every page."""
    site_writing.write_site(folder, history, build_trends(history), report)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.*"))}


def changed(count: int = 60) -> list[NightlyRecord]:
    """Return nights of which the 31st has other params and is worse from then on."""
    values = [0.9 + 0.003 * (number * 7 % 5 - 2) - (0.08 if number >= 30 else 0) for number in range(count)]
    return [
        night(
            number,
            part({MEASURED: value}, number, params=(("workers", "8" if number < 30 else "2"), ("lr", "0.1"))),
            label=f"build {number}",
        )
        for number, value in enumerate(values)
    ]


def test_a_change_is_told_with_its_night_size_and_params(tmp_path: Path) -> None:
    """Index and page of the figure say where, how much, with which interval, and what changed with it."""
    pages = build(tmp_path, changed())
    (name,) = (name for name in pages if name.startswith("figures/"))
    for text in (pages["index.html"].decode(), pages[name].decode()):
        plain = re.sub(r"<[^>]+>", " ", text).replace("\xa0", " ")
        assert day(30) in plain
        assert "build 30" in plain
        assert "workers 8 → 2" in plain
        assert "lr" not in plain.split("workers 8 → 2")[-1].split("Nights")[0].replace("slr", "")
        assert re.search(r"90 ?%\s+82 ?%\s+90 ?% → 82 ?%\s+−8.\d+ to −7.\d+ points", plain)
    index = pages["index.html"].decode().replace("\xa0", " ")
    assert re.search(r'<b class="worse">worse</b> GPU utilisation 90 ?% → 82 ?%\.', index)
    assert b'class="mark worse"' in pages[name]
    assert pages[name].count(b'class="level"') == 2
    assert pages[name].count(b"<circle") == 60


def test_a_night_without_data_is_seen(tmp_path: Path) -> None:
    """It is a row with its reason on the index and on the page of nights, and a mark in the course."""
    history = changed(12)
    history[5] = night(5, capture_missing("gpu.csv", "", "no such file or run"))
    pages = build(tmp_path, history)
    for name in ("index.html",):
        rows = [row for row in pages[name].decode().split("<tr") if day(5) in row and "No data." in row]
        assert len(rows) == 1
        assert "no such file or run" in rows[0]
    (figure,) = (content.decode() for name, content in pages.items() if name.startswith("figures/"))
    assert figure.count('class="absent"') == 1
    assert figure.count('class="line"') == 2
    history[7] = night(7, capture_missing("gpu.csv", "", "no such file or run"))
    index = build(tmp_path / "apart", history)["index.html"].decode()
    assert index.split("<table")[1].count("<circle") == 1, (
        "a night between two without data is drawn, though no line reaches it"
    )
    assert "no data" in figure.split(day(5))[1][:80]
    last = [*history, night(12, capture_missing("gpu.csv", "", "no such file or run"))]
    index = build(tmp_path, last)["index.html"].decode()
    assert "(gpu.csv): no such file or run" in index
    (main,) = re.findall(r"<figure.*?</figure>", index, re.DOTALL)
    assert main.count('class="absent"') == 3, "the curve of the job stays, with a mark for tonight"


def test_a_night_without_stated_work_is_not_called_one_without_data(tmp_path: Path) -> None:
    """Whoever gives --work later sees why the first nights have no figure."""
    work = (("--work", "600 steps"),)
    values = {"gpu_utilization_ratio": 0.9}
    history = [
        *(night(n, part(values, n)) for n in range(3)),
        *(night(n, part({**values, "gpu_seconds_per_1000_work": 135.0}, n, params=work)) for n in range(3, 6)),
    ]
    pages = build(tmp_path, history)
    figure = next(page.decode() for name, page in pages.items() if "gpu_seconds_per_1000_work" in name)
    assert "Dashed line: no work stated." in figure
    assert "no work stated" in figure.split(f">{day(1)}<")[1][:80]
    assert "GPU time per 1,000 steps" in figure
    cost = [page.decode() for name, page in pages.items() if "cost_per_1000_work" in name]
    assert all("not recorded" in page.split(f">{day(4)}<")[1][:80] for page in cost), "work is stated, a price is not"
    history.append(night(6, capture_missing("gpu.csv", "", "no such file")))
    pages = build(tmp_path / "more", history)
    assert "Dashed line: no work stated or no data." in pages["index.html"].decode()


def test_limits_are_shown_with_what_became_of_them(tmp_path: Path) -> None:
    """The newest night's on the index, the gravest first; those of each run beside it, with a link to its report."""
    held = (
        Check(limit="no idle_gap", run="bert", outcome=CheckOutcome.PASSED, observed="no finding"),
        Check(limit="cost <= 3 EUR", run="bert", outcome=CheckOutcome.CANNOT_JUDGE, reason="no price is <stated>"),
        Check(limit="idle_ratio <= 5%", run="late", outcome=CheckOutcome.BROKEN, observed="9%"),
        Check(limit="no thermal_throttle", run="", outcome=CheckOutcome.CANNOT_JUDGE, reason="no run is step b"),
    )
    newest = night(
        2, part({MEASURED: 0.5}, 2), part({MEASURED: 0.5}, 3, name="late"), capture_missing("x.csv", "", "gone")
    )
    history = [night(0, part({MEASURED: 0.5})), replace(night(1, part({MEASURED: 0.5}, 1)), checks=held[:1])]
    history.append(replace(newest, checks=held))
    pages = build(tmp_path, history)
    index = pages["index.html"].decode()
    limits = index.split('<h2 id="limits">')[1].split("<h2>")[0]
    assert "1 failed, 3 not assessed, 1 passed." in limits
    outcomes = re.findall(r'<b class="(\w+)">([^<]+)</b>', limits)
    assert outcomes == [("worse", "failed"), *[("unsure", "not assessed")] * 3, ("changed", "passed")]
    assert limits.count(f'href="nights/{history[2].page}.html#policy"') == 5
    assert '<b class="worse">FAILED</b>: late: idle share 9%, allowed 5%' in index
    assert "no price is &lt;stated&gt;" in limits.lower()
    for page in (index,):
        rows = page.split("<h2>Nights</h2>")[-1].split("<tr")[2:]
        said = [re.sub(r"<[^>]+>", "", row.split('data-name="Rules">')[-1]).strip() for row in rows]
        assert said[:2] == ["NOT ASSESSED 2 not assessed, 1 passed", "FAILED 1 failed"]
        assert said[3:] == ["PASSED 1 passed", "none stated"]
    assert b"Limits" not in build(tmp_path / "none", history[:1])["index.html"]


def test_too_few_nights_are_not_called_unchanged(tmp_path: Path) -> None:
    """Index and page of the figure say that nothing can be told, until there are nights enough to say none."""
    few = build(tmp_path / "few", nights({MEASURED: [0.5, 0.9, 0.7]}))
    many = build(tmp_path / "many", nights({MEASURED: [0.5 + 0.001 * (number % 3) for number in range(20)]}))
    for pages, said in ((few, "Not enough data"), (many, "No change in the nights recorded")):
        shown = [content for name, content in pages.items() if not name.startswith("nights/")]
        assert all(said in content.decode() for content in shown)
        assert len(shown) == 2


def test_every_page_is_static_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    """No script, no inline style, no address outside; each relative link is a page that is there."""
    pages = build(tmp_path, changed())
    for name, content in pages.items():
        tags = Tags()
        tags.feed(content.decode())
        assert "script" not in tags.names
        assert "style" not in tags.attributes
        assert not [each for each in tags.attributes if each.startswith("on")]
        for link in tags.links:
            assert "//" not in link
            assert (tmp_path / name).parent.joinpath(link).is_file(), (name, link)


def test_rebuilt_it_is_the_same_bytes(tmp_path: Path) -> None:
    """Made night after night, or at once from the same history in any order of files, the pages are the same."""
    history = changed(14)
    for count in range(1, 15):
        grown = build(tmp_path / "grown", history[:count])
    assert build(tmp_path / "new", history) == grown
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grown").rglob("*.html")}
    build(tmp_path / "grown", history)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_report_that_is_there_stays(tmp_path: Path) -> None:
    """The report of an earlier night is neither made again nor lost; where its run is gone the row says so."""
    history = changed(3)
    build(tmp_path, history)
    page = tmp_path / "nights" / f"{history[0].page}.html"
    page.write_text("kept")
    (tmp_path / "nights" / f"{history[1].page}.html").unlink()
    site_writing.write_site(tmp_path, history, build_trends(history), lambda _: None)
    assert page.read_text() == "kept"
    index = (tmp_path / "index.html").read_text()
    assert index.count("report not kept") == 1
    assert history[1].page not in index


def test_text_from_outside_is_only_text(tmp_path: Path) -> None:
    """Names that are markup or escape codes are shown and do nothing, and make no file elsewhere."""
    hostile = "<script>x</script>\x1b[31m ../../`$("
    values = {MEASURED: 0.5}
    history = [
        night(number, part(values, number, name=hostile, step=hostile, model=hostile), label=hostile)
        for number in range(2)
    ]
    history.append(night(2, capture_missing(hostile, hostile, hostile)))
    pages = build(tmp_path / "site", history)
    assert all(b"<script" not in content and b"\x1b" not in content for content in pages.values())
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.slow
def test_a_year_is_small(tmp_path: Path) -> None:
    """365 nights of twenty figures: no page above 300 KB, and each figure still has its trend."""
    history = year()
    assert len(USUAL) == 20
    pages = build(tmp_path, history)
    assert len(pages["index.html"]) < 300_000
    assert len(build_trends(history)) == 20
    assert max(len(content) for content in pages.values()) < 300_000


def test_several_jobs_are_apart(tmp_path: Path) -> None:
    """Runs of different steps and models have courses of their own, of one night each a point."""
    history = [
        night(number, *(part({MEASURED: 0.9}, 10 * number + at, step=step) for at, step in enumerate("ab")))
        for number in range(3)
    ]
    found = build_trends(history)
    assert [(trend.step, len(trend.recorded_points)) for trend in found] == [("a", 3), ("b", 3)]
    assert len([name for name in build(tmp_path, history) if name.startswith("figures/")]) == 2


def test_nothing_recorded_has_a_page(tmp_path: Path) -> None:
    """An empty history makes an index that says so."""
    assert b"No night is recorded yet" in build(tmp_path, [])["index.html"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the way is an error that names the folder."""
    (tmp_path / "site").write_text("in the way")
    with pytest.raises(RenderError, match="cannot be written"):
        build(tmp_path / "site", nights({MEASURED: [0.5]}))


def test_a_figure_that_no_night_has_is_no_column(tmp_path: Path) -> None:
    """The table of nights holds what some run has, and names findings where there are any."""
    counts = {"findings_problem": 0.0, "findings_warning": 0.0}
    quiet, loud = ({MEASURED: 0.9, **counts, "findings_warning": number} for number in (0.0, 2.0))
    table = build(tmp_path, [night(0, part(quiet)), night(1, part(loud))])["index.html"].decode()
    assert "GPU utilisation" in table
    assert "per 1,000 units of work" not in table
    assert [each for each in ('"Findings">none</td>', '"Findings">2 warnings</td>') if each not in table] == []


def test_the_night_of_an_older_value_stands_below_it(tmp_path: Path) -> None:
    """It makes the column of values no wider."""
    history = [night(0, part({MEASURED: 0.9})), night(1, capture_missing("log.csv", "", "no such file"))]
    index = build(tmp_path, history)["index.html"].decode()
    assert re.search(rf">90%<small>{day(0)}</small></td>", index)


@pytest.mark.parametrize(("value", "edges"), [(1.0, ("95%", "100%")), (0.0, ("0%", "100%")), (0.5, ("48%", "52%"))])
def test_the_edges_of_a_share_are_shares(tmp_path: Path, value: float, edges: tuple[str, str]) -> None:
    """A course that never changes has room around it, but none below nothing or above all."""
    pages = build(tmp_path, [night(number, part({MEASURED: value})) for number in range(3)])
    (page,) = (text.decode() for name, text in pages.items() if name.startswith("figures/"))
    (found,) = re.findall(r'<p class="edge">(.*?)</p>', page)
    assert tuple(found.replace("\N{NO-BREAK SPACE}", "").split(" to ")) == edges

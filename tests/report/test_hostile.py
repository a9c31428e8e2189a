"""Names that are hidden, and texts that try to be more than text."""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpureport.cli.main import main
from gpureport.testing import build_file, build_page
from tests.support.hostile import PLAIN, STEERING, TEXTS, steps_with, visible
from tests.support.runs import ReadPage, plain, strings
from tests.support.tables import read_table

FORMS = ("html", "json", "md", "svg", "txt")
QUICK = {"script", "template", "table", "link", "escape codes", "right to left", "length"}
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TEXTS]


@cache
def rendered(text: str, form: str) -> str:
    return build_page(steps_with(text), form, title=text, full=form == "txt")


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def is_break(token: Token) -> bool:
    """Return True for the one element that cells of a table have no Markdown for."""
    return token.type == "html_inline" and token.content == "<br>"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_steers_and_the_text_can_be_read(name: str) -> None:
    for form in FORMS:
        shown = rendered(TEXTS[name], form)
        assert {sign for sign in shown if unicodedata.category(sign) in STEERING} <= {"\n"}, form
    seen = visible(TEXTS[name])
    assert seen in plain(rendered(TEXTS[name], "txt"))
    assert any(seen in plain(text) for text in strings(json.loads(rendered(TEXTS[name], "json"))))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_elements_it_has_with_plain_names(name: str) -> None:
    page, usual = ReadPage(rendered(TEXTS[name], "html")), ReadPage(rendered(PLAIN, "html"))
    assert set(page.tags) <= set(usual.tags)
    assert {key for key, _ in page.attributes} <= {key for key, _ in usual.attributes}
    for tag in ("section", "article"):
        assert page.tags.count(tag) == usual.tags.count(tag)
    assert [value for value in page.values("href", "src") if not value.startswith(("#", "data:image/"))] == []
    assert visible(TEXTS[name]) in plain("".join(page.words))
    root, other = (ET.fromstring(rendered(text, "svg")) for text in (TEXTS[name], PLAIN))  # noqa: S314 - ours
    assert {element.tag for element in root.iter()} <= {element.tag for element in other.iter()}


@pytest.mark.parametrize("name", NAMES)
def test_markdown_has_the_elements_it_has_with_plain_names(name: str) -> None:
    read = [list(tokens(rendered(text, "md"))) for text in (TEXTS[name], PLAIN)]
    # the lines of a cell are the report's own, and as many whatever the name
    breaks = [sum(is_break(token) for token in each) for each in read]
    found, usual = ([token for token in each if not is_break(token)] for each in read)
    allowed = {token.type for token in usual}
    assert {token.type for token in found} <= allowed
    assert not allowed & {"html_block", "link_open", "image", "fence", "code_block", "blockquote_open"}
    whole = "Shortened" not in rendered(TEXTS[name], "md")
    assert breaks[0] == breaks[1] or not whole
    for kind in ("heading_open", "th_open", "td_open", "bullet_list_open", "list_item_open") if whole else ():
        counts = [sum(token.type == kind for token in each) for each in (found, usual)]
        # what is empty is left out
        assert counts[0] == counts[1] or (not visible(TEXTS[name]) and counts[0] < counts[1]), kind
    words = "".join(token.content for token in found if token.type in {"text", "text_special", "code_inline"})
    assert visible(TEXTS[name]) in plain(words.replace("\u200b", ""))
    # servers make links of bare addresses and call people by @name
    outside_code = re.sub(r"`[^`\n]*`", "", rendered(TEXTS[name], "md").replace("\\`", ""))
    assert not re.search(r"@\w|[^\\]://|www\.", outside_code)


@pytest.mark.slow
def test_endless_names_are_shortened() -> None:
    for form in FORMS:
        for name in ("length", "words"):
            long, usual = (build_page(steps_with(text, ours=False), form) for text in (TEXTS[name], PLAIN))
            assert len(long) < 5 * len(usual) + 10_000, (form, name)


@pytest.mark.slow
def test_a_name_never_stops_a_picture() -> None:
    for name, text in TEXTS.items():
        assert build_file(steps_with(text), "png").startswith(b"\x89PNG"), name


ADDRESSES, KEPT = (
    [text for kind, text in read_table(Path(__file__).with_name("addresses.tsv")) if kind == wanted]
    for wanted in ("address", "stays")
)
WRITTEN = ("{}", "to {}.", "({})", "a={}, b", "'{}'", "from {} to x")


def write_log(path: Path, uuid: str = "GPU-1fd5ee77-0b3c", notes: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "timestamp, index, uuid, name, serial, utilization.gpu [%], memory.used [MiB]"
    row = "2026/03/14 09:26:{:02d}.000, 0, {}, NVIDIA A40, 16522, 97 %, 4096 MiB"
    path.write_text("\n".join([head, *(row.format(second, uuid) for second in range(60))]) + "\n" + notes)
    return str(path)


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> list[dict[str, Any]]:
        with pytest.raises(SystemExit) as ended:
            main(["analyze", *arguments, "--anonymise", "--format", "json"])
        assert ended.value.code == 0
        found: list[dict[str, Any]] = [each["run"] for each in json.loads(capsys.readouterr().out)["runs"]]
        return found

    return call


def stated(option: str, **values: str) -> list[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]


def test_addresses_are_gone_and_what_looks_like_one_stays(tmp_path: Path, shown: Any) -> None:
    log = write_log(tmp_path / "gpu.csv")
    filled = [form.format(each) for each in ADDRESSES for form in WRITTEN]
    texts = {f"p{place}": text for place, text in enumerate(filled)}
    kept = {f"q{place}": text for place, text in enumerate(KEPT)}
    (run,) = shown(log, *stated("--param", **texts, **kept))
    for place, (name, text) in enumerate(texts.items()):
        # texts that are hidden alike are told apart by a number at the end
        pattern = re.escape(WRITTEN[place % len(WRITTEN)]).replace(r"\{\}", r"(<address>|host-\d+)") + r"( \d+)?"
        assert re.fullmatch(pattern, run["params"][name]), text
    assert {name: run["params"][name] for name in kept} == kept


def test_machines_are_numbered_wherever_they_are_named(tmp_path: Path, shown: Any) -> None:
    log = write_log(tmp_path / "gpu.csv")
    params = {"rdzv.endpoint": "rdzv-berta:29500", "cmd": "run --host dora9", "num_nodes": "4", "address_space": "x"}
    tags = {"hosts": "clara01, host-1", "note": "clara01.cluster.local before host-1, then <host-1>"}
    (run,) = shown(log, *stated("--param", **params), *stated("--tag", **tags))
    assert not re.search("berta|clara|dora9|cluster", json.dumps(run))
    assert (run["params"]["num_nodes"], run["params"]["address_space"]) == ("4", "x")
    # a machine may be called as a pseudonym is
    numbers = [part.strip() for part in run["tags"]["hosts"].split(",")]
    assert len(set(numbers)) == 2
    assert run["tags"]["note"] == f"{numbers[0]} before {numbers[1]}, then <{numbers[1]}>"


def test_people_paths_boards_and_names_of_files_are_hidden(tmp_path: Path, shown: Any) -> None:
    notes = "May  5 10:01:40 gpu-node-17 kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=4242, name=annas_job, Ch 8\n"
    log = write_log(tmp_path / "anna" / "gpu.anna-1.csv", notes=notes)
    tags = {"user": "anna", "account": "anna-lab", "node": "gpu-node-17", "job": "4411", "partition": "gpu"}
    params = {"data": "/scratch/anna/imagenet", "batch": "64", "user": "anna", "serial": "True"}
    # without its prefix, a GPU's uuid is known from the log
    params |= {"gpu": "GPU-1fd5ee77-0b3c", "bare": "1fd5ee77-0b3c", "board": "16522", "cmd": "x --serial 16522"}
    (run,) = shown(log, *stated("--param", **params), *stated("--tag", **tags), "--step", "of anna on gpu-node-17")
    gpu = run["devices"][0]
    assert [run["params"][name] for name in ("gpu", "bare", "board")] == [gpu["uuid"], gpu["uuid"], gpu["serial"]]
    assert (run["params"]["cmd"], run["params"]["serial"]) == (f"x --serial {gpu['serial']}", "True")
    text = json.dumps(run)
    secrets = ("anna", "gpu-node-17", "/scratch", "1fd5ee77", "16522", str(tmp_path))
    assert [secret for secret in secrets if secret in text] == []
    assert (run["params"]["batch"], run["tags"]["job"], run["tags"]["partition"]) == ("64", "4411", "gpu")
    assert run["sources"][0]["locator"] == "source-1.csv"

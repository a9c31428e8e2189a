"""Every code block of README and docs runs here, or in the test that is named for it, or says why it cannot."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.page_runner import ROOT, Block, find_missing_line, read_blocks, run_blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_RUN = ("sh", "bash", "python", "sql")
_FAILS = "gpureport check sample_logs/thermal_throttle"
"""A gate that is shown because it fails."""
_PATH = re.compile(r"(?:tests|sample_logs)/[\w/.]*\w")
KNOWN = tomllib.loads(Path(__file__).with_name("blocks.toml").read_text(encoding="utf-8"))
ELSEWHERE, NOT_RUN, SHOWN, SET_UP = (KNOWN[name] for name in ("elsewhere", "not_run", "shown", "set_up"))


def list_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are run here, each with the text it is to print behind it."""
    return [
        block for block in read_blocks(page) if not is_elsewhere(block) and not block.text.startswith(tuple(NOT_RUN))
    ]


def is_elsewhere(block: Block) -> bool:
    return block.page.startswith(tuple(ELSEWHERE))


def _expect_failure(block: Block) -> Block:
    """Return a block that is to end with 1 as one that succeeds where it does."""
    fails = block.text.startswith(_FAILS)
    return block._replace(text=f"{{ {block.text}}} || test $? = 1\n") if fails else block


SLOW = (pytest.mark.slow, pytest.mark.smoke)
RUN = [pytest.param(page, marks=SLOW if page.parent == ROOT else SLOW[:1]) for page in PAGES if list_blocks(page)]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    """Each block, run in order, must succeed and print what the page shows."""
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    blocks = list_blocks(page)
    name = page.relative_to(ROOT).as_posix()
    for start, file in SHOWN.get(name, {}).items():
        (text,) = (block.text for block in blocks if block.text.startswith(start))
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    commands = [_expect_failure(block) for block in blocks if block.language in _RUN]
    before = Block(page=name, language="sh", text=SET_UP.get(name, ":").replace("@pair\n", SET_UP["pair"]) + "\n")
    _, *others = run_blocks([before, *commands], tmp_path)
    printed = iter(others)
    last = ""
    for block in blocks:
        if block.language in _RUN:
            last = next(printed)
        elif block.language == "text":
            assert find_missing_line(block.text, last) is None, f"{block.text}\nis shown, this is printed:\n{last}"


def test_every_block_is_looked_after() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page)]
    known = [start for starts in SHOWN.values() for start in starts]
    others = [block for block in blocks if not is_elsewhere(block) and block.language not in (*_RUN, "text")]
    assert [block for block in others if not block.text.startswith((*known, *NOT_RUN))] == []
    assert [start for start in NOT_RUN if not any(block.text.startswith(start) for block in blocks)] == []
    named = {path for reason in (*ELSEWHERE.values(), *NOT_RUN.values()) for path in _PATH.findall(reason)}
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_files_that_a_cluster_reads_are_valid() -> None:
    for page in PAGES:
        for block in read_blocks(page):
            if block.language == "yaml":
                assert all(yaml.safe_load_all(block.text)), block.text
            elif block.language == "json":
                assert json.loads(block.text)

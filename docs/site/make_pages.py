"""Write the pages that are generated from the code, or list those that are out of date.

    python docs/site/make_pages.py [--check]      pages of docs/, and tests/golden/messages.txt
    python docs/site/make_pages.py --pictures     pictures of the kinds, from the sample logs
    python docs/site/make_pages.py --screenshots  pictures of README and tutorial; needs Chromium
    python docs/site/make_pages.py --notebook     what the cells of docs/tutorial/python.ipynb show
    python docs/site/make_pages.py --manual FILE  the manual page, which is not kept in the repository

It needs the extra `docs`.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from generators import (  # noqa: E402 - found beside this file
    kind_pictures,
    kinds_page,
    man_page,
    message_texts,
    notebook,
    pages,
    report_schema,
    rooms_picture,
    secrets_page,
)

PAGES: dict[str, Callable[[], str]] = {
    "docs/images/rooms.svg": rooms_picture.draw_rooms,
    "docs/reference/cli.md": pages.cli_page,
    "docs/reference/kinds.md": kinds_page.kinds_page,
    "docs/reference/limits.md": pages.limits_page,
    "docs/reference/metrics.md": pages.metrics_page,
    "docs/reference/python.md": pages.python_page,
    "docs/reference/report-2.schema.json": report_schema.schema_page,
    "docs/reference/secrets.md": secrets_page.secrets_page,
    "tests/golden/messages.txt": message_texts.list_wordings,
}


def main() -> int:
    """Do what the command line asks for; return 1 if a page is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--check", "--pictures", "--screenshots", "--notebook"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--manual", type=Path)
    given = parser.parse_args()
    if given.pictures:
        drawn = {f"docs/images/kinds/{kind}.svg": kind_pictures.draw_kind(kind) for kind in kind_pictures.SERIES}
        return _write(drawn, given.check)
    if given.notebook:
        page = "docs/tutorial/python.ipynb"
        return _write({page: notebook.show_notebook(ROOT / page)}, given.check)
    if given.screenshots:
        from generators import pictures

        pictures.make_all()
        return 0
    if given.manual:
        given.manual.write_text(man_page.man_page(), encoding="utf-8", newline="\n")
        return 0
    return _write({name: make() for name, make in PAGES.items()}, given.check)


def _write(made: dict[str, str], check: bool) -> int:
    """Write files that differ from the generated text, or name them."""
    old = [name for name, text in made.items() if not _reads(ROOT / name, text)]
    for name in old:
        print(f"{name} {'is out of date: python docs/site/make_pages.py' if check else 'written'}")
        if not check:
            (ROOT / name).write_text(made[name], encoding="utf-8", newline="\n")
    return int(check and bool(old))


def _reads(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())

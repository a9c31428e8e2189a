"""Add the README and the sample logs to the site, and redirect links to them.

The pages are written for readers of the repository: their links name files in the checkout. A link from `docs/` to
`sample_logs/`, or from the README to `docs/`, is rewritten to the place of the same file in the site.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_SEARCH = 'data-md-component="search" role="dialog"'
_LINK = re.compile(r'(\]\(|\b(?:src|srcset|href)=")([^)\s"#:]+)(?=[)\s"#])')


def on_files(files: Files, *, config: "MkDocsConfig") -> Files:
    """Add the files outside `docs/`."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    for path in sorted((ROOT / "sample_logs").rglob("*.*")):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: "Page", config: "MkDocsConfig", files: Files) -> str:
    """Rewrite links, and save the Markdown next to the page for those who prefer it."""
    del files
    here = Path(page.file.abs_src_path or "").parent
    text = _LINK.sub(lambda link: link[1] + _site_link(link[2], here, page.file.src_uri), markdown)
    copy = Path(config.site_dir, page.file.src_uri)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text, encoding="utf-8")
    return text


def _site_link(link: str, here: Path, page: str) -> str:
    """Return the link from a page in the site to a file in the checkout, or the link as it is if there is no file."""
    target = (here / link).resolve()
    if not (target.is_relative_to(ROOT) and target.exists()):
        return link
    uri = target.relative_to(ROOT).as_posix().removeprefix("docs/")
    uri = "index.md" if uri == "README.md" else uri
    return "../" * page.count("/") + uri


def on_post_page(output: str, **_given: object) -> str:
    """Add the name that the theme's search dialog lacks."""
    return output.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')


def on_post_build(config: "MkDocsConfig") -> None:
    """Write llms.txt for programs, with one line per page."""
    sys.path.insert(0, str(Path(__file__).parent))
    from generators import llms_index

    Path(config.site_dir, "llms.txt").write_text(llms_index.llms_index(), encoding="utf-8", newline="\n")

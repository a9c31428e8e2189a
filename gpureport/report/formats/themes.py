"""Themes: templates of the user replace those shipped, and their mistakes are reported with file and line."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path, PurePath
from traceback import walk_tb

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
)

from gpureport import resources
from gpureport.errors import RenderError
from gpureport.report.charts import palette
from gpureport.report.formats.theme_files import (
    LOGOS,
    ThemeFileError,
    ThemeLoader,
    adapts_to_dark,
    find_logo,
    find_theme_file,
)
from gpureport.report.formats.theme_sandbox import ThemeEnvironment

SHIPPED = "shipped"
"""Prefix of template names that always means the shipped template, even where the theme has one of that name."""

ACCENT = "accent.typ"
"""A file that set the accent of PDFs in earlier versions."""

FILTERS = ("term", "meaning", "together", "shared", "merged", "notes")
"""Filters that a page has besides those of Jinja."""

_PICTURES = {
    ".svg": "svg+xml",
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".gif": "gif",
    ".webp": "webp",
}
_MISTAKES = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a template can raise."""

_NAMED = 5
"""Files of a folder that are named where none can be used."""
_NEAR = 0.8
"""Likeness of a name from which it is taken for a mistyped one."""

_HINT = "mend it, or take it out of the folder to use the one shipped"


def template_loader(templates: Path | None) -> BaseLoader:
    """Return the loader that looks for templates in the theme first, then among those shipped."""
    shipped = FileSystemLoader(resources.find_shipped_folder("templates"))
    own = [] if templates is None else [ThemeLoader(templates)]
    return ChoiceLoader([*own, shipped, PrefixLoader({SHIPPED: shipped})])


def make_environment(templates: Path | None) -> Environment:
    """Return the environment that runs templates: in a sandbox where a person brings some of their own."""
    kind = Environment if templates is None else ThemeEnvironment
    pages: Environment = kind(
        loader=template_loader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.globals |= {
        "colours": palette.SHARED,
        "picture": picture_function(templates),
        "logo": lambda: find_logo(templates),
        "logo_adapts": lambda: templates is not None and adapts_to_dark(templates / find_logo(templates)),
    }
    return pages


def picture_function(templates: Path | None) -> Callable[[str], str]:
    """Return the function that turns a picture of the theme into a data URL for templates."""

    def address(name: str) -> str:
        kind = _PICTURES.get(PurePath(name).suffix.lower())
        path = find_theme_file(templates or resources.find_shipped_folder("templates"), name)
        if kind is None or path is None:
            kinds = ", ".join(_PICTURES)
            message = f"no picture {name!r} in the folder of the theme (one of {kinds})"
            raise TemplateRuntimeError(message)
        return f"data:image/{kind};base64,{b64encode(path.read_bytes()).decode()}"

    return address


def check_theme(templates: Path) -> None:
    """Refuse a theme that is not a folder, has no template, logo or font, or holds one that cannot be read.

    Raises:
        RenderError: naming the file, and the line where there is one.
    """
    if not templates.is_dir():
        raise RenderError(str(templates), "no such folder", "name a folder with templates")
    shipped = resources.find_shipped_folder("templates")
    names = sorted(str(path.relative_to(shipped)) for path in shipped.rglob("*") if path.is_file())
    own = [name for name in names if (templates / name).is_file()]
    logos = [name for name in LOGOS if (templates / name).exists()]
    for name in logos:
        _find_file(templates, name)
    if not own and not logos and not _has_fonts(templates):
        found = sorted(path.name for path in templates.iterdir())
        shown = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        what = f"holds no template of a name that is used (found: {shown or 'nothing'})"
        near = [match for name in found for match in get_close_matches(name.lower(), (*names, *LOGOS), 1, _NEAR)]
        hint = (
            f"did you mean {near[0]}?" if near else f"call a logo {' or '.join(LOGOS)}; the guide to themes names more"
        )
        if ACCENT in found:
            hint = f"state --link in report.css, as {ACCENT} is no longer read"
        raise RenderError(str(templates), what, hint)
    environment = make_environment(templates)
    environment.filters |= dict.fromkeys(FILTERS, str)
    for name in own:
        _check_file(templates, name)
        with locate_template_errors(templates):
            environment.get_template(name)


def _has_fonts(templates: Path) -> bool:
    """Return whether the theme brings fonts for the PDF, which needs no template of its own."""
    from gpureport.report.charts.fonts import find_theme_fonts  # noqa: PLC0415 - loads matplotlib

    return bool(find_theme_fonts(templates))


def _check_file(templates: Path, name: str) -> None:
    """Refuse a file that leads out of the folder, or is not text as UTF-8.

    Raises:
        RenderError: naming the file, and the line that is no text.
    """
    _find_file(templates, name)
    path = templates / name
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RenderError(f"{path}:{line}", "is not text as UTF-8", "save it as UTF-8") from error


def _find_file(templates: Path, name: str) -> None:
    """Refuse a file that leads out of the folder, is no regular one, or is too large.

    Raises:
        RenderError: naming the file.
    """
    try:
        find_theme_file(templates, name)
    except ThemeFileError as error:
        raise RenderError(str(templates / name), str(error), _HINT) from error


@contextmanager
def locate_template_errors(templates: Path | None) -> Iterator[None]:
    """Turn an error raised by a template of the theme into one with its file and line; leave other errors as they are.

    Raises:
        RenderError: naming file and line.
    """
    try:
        yield
    except _MISTAKES as error:
        where = _template_line(error, templates) if templates is not None else None
        if isinstance(error, ThemeFileError):
            where = where or str(templates)
        if where is None:
            raise
        what = " ".join((getattr(error, "message", None) or str(error) or type(error).__name__).split())
        if isinstance(error, RecursionError):
            what = f"it extends or includes itself; the shipped one is called {SHIPPED}/…"
        raise RenderError(where, what, _HINT) from error


def _template_line(error: BaseException, templates: Path) -> str | None:
    """Return file and line in the theme that an error comes from; None where it comes from elsewhere."""
    if isinstance(error, TemplateSyntaxError) and error.filename and _within(error.filename, templates):
        return f"{error.filename}:{error.lineno}"
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [f"{name}:{line}" for name, line in frames if _within(name, templates)]
    return own[-1] if own else None


def _within(name: str, folder: Path) -> bool:
    return folder.resolve() in Path(name).resolve().parents

"""One execution: a reader is given a text, and how that ended."""

import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from gpureport.cli.messages.styled_text import make_printable
from gpureport.errors import GpureportError
from tests.fuzz.targets.target import Target
from tests.patience import EndlessError, patience

PATIENCE = 5.0
"""Seconds of the processor after which a reader is held to be endless."""
LARGEST = 110_000
"""Bytes of a text at most."""
_LONGEST = 15_000
"""Characters of an error at most."""
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """An ending that no text may cause.

    Attributes:
        where: class of the exception and the line of the package that raised it; the same for the same fault.
        what: the exception in words.
    """

    where: str
    what: str


def prepare(target: Target, folder: Path) -> Path:
    """Write what a target needs into an empty folder; return the path of its input."""
    target.prepare(folder)
    return folder / target.file


def execute(target: Target, path: Path, data: bytes) -> Offence | None:
    """Give a text to a reader; return None where it ended in a result or in an error of the project."""
    path.write_bytes(data)
    try:
        with patience(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("error")
            target.read(path)
    except GpureportError as error:
        line = make_printable(str(error))
        return Offence(where=f"no line in {_place(error)}", what=line[:300]) if len(line) > _LONGEST else None
    except (Exception, EndlessError) as error:  # noqa: BLE001 - this is what is looked for
        return Offence(where=f"{type(error).__name__} in {_place(error)}", what=" ".join(str(error).split())[:300])
    return None


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if each.filename.startswith(str(_ROOT / "gpureport"))]
    last = (ours or frames)[-1]
    return f"{last.filename.removeprefix(str(_ROOT)).lstrip('/')}:{last.lineno}"

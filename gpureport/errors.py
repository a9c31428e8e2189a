"""What can go wrong, one class a cause; every message says where, what, and what to do."""

import copyreg
import errno
import re
from pathlib import Path

from gpureport.redaction import redact_start, redact_text
from gpureport.regular_files import name_by_url

_LONGEST = 300  # characters of an exception's own text that are shown
_MOST = 4000  # characters of each part of an error, which repeats what a person gave, however long
_REFUSALS = {errno.EIO, errno.EACCES, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT}
_PACKAGE = Path(__file__).parent
Problem = tuple[str, str]
CodedProblem = tuple[str, str, str]
"""What is wrong, and what to do about it, and its code: an error is made of them where the caller knows the place."""
_NO_THREAD = "can't start new thread"
"""What Python says where the system refuses one, for lack of memory or by a limit."""
_NO_SPACE = re.compile("failed to map segment from shared object|annot allocate memory")
"""What the system says where a library does not fit into memory."""
_BUG = "this is a bug in gpureport: please report it with the traceback that --debug prints"


def describe_shortage(error: Exception) -> Problem | None:
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and _NO_SPACE.search(str(error))):
        return "there is not enough memory for it", "give less at a time, such as --from and --to, or more memory"
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "the system starts no more threads", "give it more memory, or allow more processes (ulimit -u)"
    return None


class GpureportError(Exception):
    """A failure a person can act on, printed as one line without a traceback.

    Args:
        where: the file, folder, key or run concerned; printed first unless `what` names it in quotes.
        what: what is wrong with it.
        hint: what to do about it.
        code: what is wrong in one word of snake_case, which stays when the sentence changes: `no_such_file`.
    """

    def __init__(self, where: str, what: str, hint: str, *, code: str = "") -> None:
        """Keep the parts; joined, without the code, they are the text. Copies go by their URLs."""
        texts = (redact_text(name_by_url(text)) for text in (where, what, hint))
        middle = _MOST // 2
        where, what, hint = (text if len(text) <= _MOST else f"{text[:middle]} … {text[-middle:]}" for text in texts)
        super().__init__(f"{what}; {hint}" if f'"{where}"' in what else f"{where}: {what}; {hint}")
        self.where, self.what, self.hint, self.code = where, what, hint, code

    def __reduce__(self) -> tuple[object, ...]:
        """Let an error go to another process, with its parts beside its text."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # the stubs lack it


class SourceError(GpureportError):
    """A source is missing, cannot be read, or holds nothing this tool can use.

    Args:
        aside: lines a person can save and use, printed to standard output; empty when there are none.
    """

    def __init__(self, where: str, what: str, hint: str, aside: str = "", *, code: str = "") -> None:
        super().__init__(where, what, hint, code=code)
        self.aside = aside

    def at(self, where: str) -> "SourceError":
        return SourceError(where, self.what, self.hint, self.aside, code=self.code)


class PlaceError(GpureportError):
    """A bucket cannot be reached, or refuses."""


class StoreError(GpureportError):
    """The store is missing, damaged, or written by a newer version."""


class UnknownRunError(StoreError):
    """The store holds no run of a name."""


class DamagedRunError(StoreError):
    """What is stored of a run is not what was written; reading its log again mends it."""


class SettingsError(GpureportError):
    """A setting, option or policy is not valid."""


class RenderError(GpureportError):
    """A report cannot be rendered or written."""


class InternalError(GpureportError):
    """A fault of gpureport itself: the log, the run or the command it failed on, and what nobody expected."""

    def __init__(self, where: str, error: Exception) -> None:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if Path(each.filename).is_relative_to(_PACKAGE)][-1:]
        line = "".join(f" in {Path(each.filename).relative_to(_PACKAGE).as_posix()}:{each.lineno}" for each in own)
        text = redact_start(" ".join(str(error).split()), _LONGEST)
        what = f"internal error ({type(error).__name__}{line}{text and f': {text}'})"
        super().__init__(where, what, _BUG, code="internal_error")
        self.trace = redact_text("".join(traceback.format_exception(error)))


def find_refusal(error: BaseException) -> OSError | None:
    """Return why the system does not let a file be read now, which lies behind an error; None where it is missing."""
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, OSError) and cause.errno in _REFUSALS):
        cause = cause.__cause__
    return cause

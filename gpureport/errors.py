"""Errors, one class per cause. Each message says where the problem is, what it is, and what to do."""

import copyreg
import errno
import re
from pathlib import Path

from gpureport.redaction import redact_start, redact_text
from gpureport.regular_files import name_by_url

_LONGEST = 300  # characters of an exception's own text that are shown
_MOST = 4000  # characters in each part of an error, which may repeat long user input
_REFUSALS = {errno.EIO, errno.EACCES, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT}
_PACKAGE = Path(__file__).parent
Problem = tuple[str, str]
CodedProblem = tuple[str, str, str]
"""What is wrong, what to do about it, and the code. The caller adds the place."""
_NO_THREAD = "can't start new thread"
"""Python's message if it cannot start a thread, because of a limit or a lack of memory."""
_NO_SPACE = re.compile("failed to map segment from shared object|annot allocate memory")
"""The system's message if there is not enough memory to load a library."""
_BUG = "this is a bug in gpureport: please report it with the traceback that --debug prints"


def describe_shortage(error: Exception) -> Problem | None:
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and _NO_SPACE.search(str(error))):
        return "there is not enough memory for it", "read less data at a time (--from and --to), or use more memory"
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "the system cannot start another thread", "allow more memory or more processes (ulimit -u)"
    return None


class GpureportError(Exception):
    """A failure that users can fix, printed as one line without a traceback.

    Args:
        where: the file, folder, key or run concerned; printed first unless quoted in `what`.
        what: what is wrong with it.
        hint: what to do about it.
        code: a stable snake_case name for the problem, such as `no_such_file`.
    """

    def __init__(self, where: str, what: str, hint: str, *, code: str = "") -> None:
        texts = (redact_text(name_by_url(text)) for text in (where, what, hint))
        middle = _MOST // 2
        where, what, hint = (text if len(text) <= _MOST else f"{text[:middle]} … {text[-middle:]}" for text in texts)
        super().__init__(f"{what}; {hint}" if f'"{where}"' in what else f"{where}: {what}; {hint}")
        self.where, self.what, self.hint, self.code = where, what, hint, code

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, so that other processes receive the message and its parts."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # the stubs lack it


class SourceError(GpureportError):
    """A source is missing or unreadable, or contains nothing usable.

    Args:
        aside: lines that the user can save and use, printed to standard output, if any.
    """

    def __init__(self, where: str, what: str, hint: str, aside: str = "", *, code: str = "") -> None:
        super().__init__(where, what, hint, code=code)
        self.aside = aside

    def at(self, where: str) -> "SourceError":
        return SourceError(where, self.what, self.hint, self.aside, code=self.code)


class PlaceError(GpureportError):
    """A bucket cannot be reached, or denies access."""


class StoreError(GpureportError):
    """The store is missing, damaged, or written by a newer version."""


class UnknownRunError(StoreError):
    """The store has no run with the given name."""


class DamagedRunError(StoreError):
    """A stored run has changed since it was written; ingesting its log again repairs it."""


class SettingsError(GpureportError):
    """A setting, option or policy is not valid."""


class RenderError(GpureportError):
    """A report cannot be rendered or written."""


class InternalError(GpureportError):
    """A bug in gpureport: the log, run or command that failed, and the unexpected error."""

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
    """Return the underlying system error if a file may be only temporarily unreadable, else None."""
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, OSError) and cause.errno in _REFUSALS):
        cause = cause.__cause__
    return cause

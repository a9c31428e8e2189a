"""What can go wrong, one class a cause; every message says where, what, and what to do."""

from gpureport.fetched_copies import name_by_url


class GpureportError(Exception):
    """A failure a person can act on, printed as one line without a traceback.

    Args:
        where: the file, folder, key or run concerned; printed first unless `what` names it in quotes.
        what: what is wrong with it.
        hint: what to do about it.
    """

    def __init__(self, where: str, what: str, hint: str) -> None:
        """Keep the three parts; their joined form is the exception's text. Copies are named by their URLs."""
        where, what, hint = name_by_url(where), name_by_url(what), name_by_url(hint)
        super().__init__(f"{what}; {hint}" if f'"{where}"' in what else f"{where}: {what}; {hint}")
        self.where = where
        self.what = what
        self.hint = hint


class SourceError(GpureportError):
    """A source is missing, cannot be read, or holds nothing this tool can use.

    Args:
        aside: lines a person can save and use, printed below the message; empty when there are none.
        to_stdout: whether these lines are the answer of the command, so that they go to standard output.
    """

    def __init__(self, where: str, what: str, hint: str, aside: str = "", *, to_stdout: bool = False) -> None:
        """Keep the parts."""
        super().__init__(where, what, hint)
        self.aside = aside
        self.to_stdout = to_stdout

    def at(self, where: str) -> "SourceError":
        """Return the same of a file under the name a person gave it."""
        return SourceError(where, self.what, self.hint, self.aside, to_stdout=self.to_stdout)


class PlaceError(GpureportError):
    """A bucket cannot be reached, or refuses."""


class StoreError(GpureportError):
    """The store is missing, damaged, or written by a newer version."""


class SettingsError(GpureportError):
    """A setting, option or policy is not valid."""


class RenderError(GpureportError):
    """A report cannot be rendered or written."""

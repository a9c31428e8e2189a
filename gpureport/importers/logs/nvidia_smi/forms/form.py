"""What every form of nvidia-smi output offers to the reader of a log with several."""

from typing import Protocol

from gpureport.importers.text.text_log import Form


class BlockForm(Form, Protocol):
    """A form whose blocks can be told by the line they begin with."""

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line begins a block of this form."""
        ...

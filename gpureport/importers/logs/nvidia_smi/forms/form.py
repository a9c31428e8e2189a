"""What a form of nvidia-smi's output is to the reader of a log that may hold several."""

from typing import Protocol

from gpureport.importers.text.text_log import Form


class BlockForm(Form, Protocol):
    """A form whose blocks can be told by the line they begin with."""

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line begins a block of this form."""
        ...

"""A log of whole lines, each in the file at once, so that nothing killed leaves half a line."""

import os
from pathlib import Path


class LineFile:
    """A log being written.

    Attributes:
        name: name of the file.
        failure: why writing ended early, such as a full disk; empty while it goes on.
        lines: lines written.
    """

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            OSError: when it cannot be made.
        """
        self.name = path.name
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._pending = b""
        self.failure = ""
        self.lines = 0

    def write(self, text: bytes) -> None:
        """Add text; what follows the last line break waits for the rest of its line."""
        whole, line_break, self._pending = (self._pending + text).rpartition(b"\n")
        if line_break and not self.failure:
            self._append(whole + line_break)

    def end_line(self) -> None:
        """Forget half a line: the program that wrote it ended."""
        self._pending = b""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, text: bytes) -> None:
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, text)
            if written == len(text):
                self.lines += text.count(b"\n")
                return
            # what was not taken says why at the second try
            os.write(self._file, text[written:])
            reason = "the file takes no more"
        except OSError as error:
            reason = error.strerror or "it cannot be written"
        self.failure = f"{self.name} ends early: {reason}."
        os.ftruncate(self._file, self._end_of_whole_lines(before, text))

    def _end_of_whole_lines(self, before: int, text: bytes) -> int:
        """Return the length of the file up to the last line that is in it whole."""
        taken = text[: max(0, os.fstat(self._file).st_size - before)]
        self.lines += taken.count(b"\n")
        return before + taken.rfind(b"\n") + 1

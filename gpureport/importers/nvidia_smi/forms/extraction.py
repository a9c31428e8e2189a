"""A log of nvidia-smi's forms being read: which block was read as what, and what to do where it has no time."""

from dataclasses import replace

from gpureport.importers.base import Outcome, Placement
from gpureport.importers.chunks import INTERVAL, FormExtraction
from gpureport.importers.nvidia_smi.forms.dmon import Dmon
from gpureport.importers.nvidia_smi.forms.mixed import TEXT, Mixed
from gpureport.importers.raw import RawFile

_HINT = f"{INTERVAL}: 1 s unless -d said otherwise; dmon -o DT writes the time"

_LISTS = "record a list of processes with its time: pmon -o DT, or --query-compute-apps=timestamp,..."


class FormsExtraction(FormExtraction):
    """One log of one or several forms being read."""

    def __init__(self, file: RawFile, placement: Placement) -> None:
        """Prepare to read; nothing is read yet."""
        self._mixed = Mixed()
        super().__init__(file, placement, Mixed)
        self._form = self._mixed

    def _nothing(self) -> tuple[str, str]:
        """Return why no row is left, and what to do."""
        what, hint = super()._nothing()
        if hint != INTERVAL:
            return what, hint
        forms = dict.fromkeys(block.form for block in self._mixed.blocks if block.form != TEXT)
        if not any(block.rows for block in self._mixed.blocks):
            hint = _LISTS
        return f"its rows ({', '.join(forms)}) have no time", _HINT if Dmon.name in forms else hint

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        outcome = super().outcome()
        blocks = tuple(self._mixed.blocks)
        forms = dict.fromkeys(block.form for block in blocks if block.rows)
        return replace(outcome, understanding=replace(outcome.understanding, columns_by=tuple(forms), blocks=blocks))

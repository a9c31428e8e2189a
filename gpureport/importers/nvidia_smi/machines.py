"""Rows of several machines in one query log: a column of a script's own that names the host tells them."""

import re
from dataclasses import dataclass, field

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.assembly import Values

_NAMES = re.compile(r"extra_(?:host_?name|host|node_?name|node|machine)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_ACROSS = ("uuid", "serial")
"""What names a GPU among those of all machines; an index and a PCI address are those of one."""
_SEVERAL = 3
"""Rows from which on a name is that of a machine, and not a damaged one."""


@dataclass(slots=True)
class Machines:
    """Refuses rows of GPUs that have one number on several machines.

    Attributes:
        path: the log.
    """

    path: str
    _rows: dict[str, int] = field(default_factory=dict)

    def see(self, data: dict[str, Values]) -> None:
        """Look at the next rows.

        Raises:
            SourceError: when several machines are named and nothing tells their GPUs apart.
        """
        name = next((name for name in data if _NAMES.fullmatch(name)), None)
        if name is None or any(across in data and data[across].valid.any() for across in _ACROSS):
            return
        texts = np.asarray(data[name].texts or (), dtype=object)
        counts = np.bincount(data[name].data[data[name].valid].astype(np.int64), minlength=len(texts))
        for text, count in zip(texts.tolist(), counts.tolist(), strict=False):
            if count and _LETTER.search(text):
                self._rows[text] = self._rows.get(text, 0) + count
        machines = sorted(text for text, count in self._rows.items() if count >= _SEVERAL)
        if len(machines) > 1:
            what = f"GPUs of several machines ({', '.join(machines[:5])}) in one log without uuid"
            raise SourceError(self.path, what, "write one file a machine, and read them with --as-one-run; or log uuid")

"""Rows of several machines in one query log, recognised by a column that a script adds for the host."""

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.devices.column_values import Values

HOST_COLUMN = re.compile(r"extra_(?:host_?name|host|node_?name|node|machine)", re.IGNORECASE)
"""Columns that name the machine."""
_LETTER = re.compile(r"[^\W\d_]")
_UNIQUE_ACROSS_MACHINES = ("uuid", "serial")
"""What names a GPU among those of all machines; an index is one of a machine, and a PCI address may be."""
_SEVERAL = 3
"""Rows from which on a name is that of a machine, and not a damaged one."""


@dataclass(slots=True)
class HostColumnCheck:
    """Refuses rows of GPUs that have one number on several machines.

    Attributes:
        path: the log.
    """

    path: str
    _rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows by the PCI address they name, empty where none, and the machine."""

    def see(self, data: dict[str, Values]) -> None:
        """Look at the next rows.

        Raises:
            SourceError: when several machines are named and nothing tells their GPUs apart.
        """
        name = next((name for name in data if HOST_COLUMN.fullmatch(name)), None)
        if name is None or any(across in data and data[across].valid.any() for across in _UNIQUE_ACROSS_MACHINES):
            return
        self._rows.update(_count_address_machine_pairs(data.get("bus_id"), data[name]))
        machines: dict[str, list[str]] = {}
        for (address, machine), count in sorted(self._rows.items()):
            if count >= _SEVERAL and _LETTER.search(machine):
                machines.setdefault(address, []).append(machine)
        shared = next((each for each in machines.values() if len(each) > 1), None)
        if shared is not None:
            what = f"GPUs of several machines ({', '.join(shared[:5])}) in one log without uuid"
            raise SourceError(
                self.path,
                what,
                "write one file a machine, and read them with --as-one-run; or log uuid",
                code="several_machines",
            )


def _count_address_machine_pairs(addresses: Values | None, machines: Values) -> Counter[tuple[str, str]]:
    """Return how many rows name each address and machine."""
    names, held = machines.texts or [], (addresses.texts if addresses else None) or []
    codes = np.full(len(machines.data), len(held), dtype=np.int64)
    if addresses is not None and held:
        codes[addresses.valid] = addresses.data[addresses.valid]
    pairs, counts = np.unique(codes[machines.valid] * len(names) + machines.data[machines.valid], return_counts=True)
    found = zip(pairs.tolist(), counts.tolist(), strict=True)
    return Counter({([*held, ""][pair // len(names)], names[pair % len(names)]): count for pair, count in found})

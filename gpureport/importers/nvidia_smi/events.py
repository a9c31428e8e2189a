"""The bit mask of clock events taken apart into one column a reason."""

import numpy as np

from gpureport.importers.assembly import Values
from gpureport.importers.nvidia_smi.fields import CLOCK_EVENTS
from gpureport.metrics import CLOCK_EVENT_BITS

_KNOWN = np.uint64(sum(CLOCK_EVENT_BITS.values()))


def expand(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns with the mask replaced by one column a reason; bits without a name are kept in hex.

    Columns of single reasons the log holds besides the mask give way to it: the mask is read in one moment.
    """
    mask = data.get(CLOCK_EVENTS)
    if mask is None:
        return data
    rest = {name: values for name, values in data.items() if name != CLOCK_EVENTS}
    bits = mask.data.astype(np.uint64)
    reasons = {
        f"clock_event_{reason}": Values((bits & np.uint64(bit)) != 0, mask.valid)
        for reason, bit in CLOCK_EVENT_BITS.items()
    }
    return rest | reasons | {"clock_event_unknown_bits": Values(bits & ~_KNOWN, mask.valid)}

"""The bit mask of clock events taken apart into one column a reason."""

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, repeat_value
from gpureport.importers.devices.series_assembly import Values
from gpureport.importers.logs.nvidia_smi.query.fields import CLOCK_EVENTS
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
    ever, always = np.bitwise_or.reduce(bits), np.bitwise_and.reduce(bits)
    reasons = {
        f"clock_event_{reason}": Values(_set(bits, np.uint64(bit), ever, always), mask.valid)
        for reason, bit in CLOCK_EVENT_BITS.items()
    }
    unknown = bits & ~_KNOWN if ever & ~_KNOWN else repeat_value(np.uint64(0), len(bits))
    return rest | reasons | {"clock_event_unknown_bits": Values(unknown, mask.valid)}


def _set(bits: npt.NDArray[np.uint64], bit: np.uint64, ever: np.uint64, always: np.uint64) -> BoolArray:
    """Return where a bit is set, given the bits that are set anywhere and those set everywhere: most never are."""
    return (bits & bit) != 0 if ever & bit and not always & bit else repeat_value(bool(always & bit), len(bits))

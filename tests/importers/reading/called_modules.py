"""Which modules of the importers a piece of work runs through."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import gpureport.importers

_ROOT = Path(gpureport.importers.__file__).parent


def called_modules(work: Callable[[], object]) -> set[str]:
    """Return the modules below `gpureport.importers` of which a function is called, in this thread or a new one."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = (Path(file).relative_to(_ROOT) for file in files if Path(file).is_relative_to(_ROOT))
    # the room's own face hands names on
    return {".".join(path.with_suffix("").parts) for path in inside if path.name != "__init__.py"}

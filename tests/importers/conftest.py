"""What is read of each of several logs is held as in `readers/`."""

from tests.readers.conftest import hold

__all__ = ["hold"]

"""Places that a test knows to lie on this machine."""

from pathlib import Path

from gpureport.places import Place


def local(place: Place) -> Path:
    assert isinstance(place, Path)
    return place

"""The hash that is begun before the file is read."""

from hashlib import sha256
from pathlib import Path

import pytest

from gpureport import hash_ahead
from gpureport.errors import SourceError
from gpureport.importers.raw import RawFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some blocks."""
    path = tmp_path / "log"
    path.write_bytes(bytes(range(251)) * 40_000)
    return path


def test_reading_goes_on_with_what_was_begun(path: Path) -> None:
    """However much was hashed ahead, what is read and the hash are those of the file."""
    whole = path.read_bytes()
    hash_ahead.begin(path)
    file = RawFile(path, begun=True)
    assert b"".join(file.blocks()) == whole
    file.settle()
    assert (file.sha256(), file.hashed) == (sha256(whole).hexdigest(), len(whole))


def test_it_can_be_asked_for_before_reading(path: Path) -> None:
    """The rest is hashed then."""
    hash_ahead.begin(path)
    assert RawFile(path, begun=True).sha256() == sha256(path.read_bytes()).hexdigest()


def test_a_log_that_was_written_to_since_is_hashed_anew(path: Path) -> None:
    """What grew before it was first read is one log with all that is in it."""
    hash_ahead.begin(path)
    with path.open("ab") as log:
        log.write(b"more")
    file = RawFile(path, begun=True)
    whole = path.read_bytes()
    assert b"".join(file.blocks()) == whole
    assert file.sha256() == sha256(whole).hexdigest()


def test_a_log_that_changes_after_it_was_hashed_ahead_is_refused(path: Path) -> None:
    """Rows of other bytes than those of the run's id are not taken."""
    hash_ahead.begin(path)
    file = RawFile(path, begun=True)
    blocks = file.blocks(300)
    next(blocks)
    path.write_bytes(b"x" * path.stat().st_size)
    list(blocks)
    with pytest.raises(SourceError, match="it changed while it was read"):
        file.settle()


def test_what_was_begun_is_taken_once(path: Path) -> None:
    """A file that is read again is hashed again."""
    hash_ahead.begin(path)
    ahead = hash_ahead.taken(path)
    assert ahead is not None
    assert ahead.hashed <= path.stat().st_size
    assert hash_ahead.taken(path) is None


def test_only_a_file_is_hashed(tmp_path: Path) -> None:
    """A folder, a name that is none and one that is too long are left to whoever reads them."""
    for source in (tmp_path, Path("-"), Path("mlflow:http://host"), Path("x" * 5000)):
        hash_ahead.begin(source)
        assert hash_ahead.taken(source) is None

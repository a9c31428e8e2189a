"""One log with rows of several machines, named by a column of a script's own."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from tests.importers.accounts import kept, lines
from tests.importers.written_logs import read_text


def rows(*names: str, ticks: int = 10, uuid: bool = False) -> str:
    """Return a log of GPU 0 of each machine named."""
    header = f"timestamp, hostname, index, {'uuid, ' if uuid else ''}utilization.gpu [%]"
    told = [(name, f"GPU-{name}, " if uuid else "") for name in names]
    return lines(
        header,
        *(f"2026/03/14 09:00:{tick:02d}.000, {name}, 0, {of}{tick} %" for tick in range(ticks) for name, of in told),
    )


def test_gpus_that_share_a_number_are_refused(tmp_path: Path) -> None:
    """GPU 0 of two machines would be one GPU that does what both do."""
    with pytest.raises(SourceError, match=r"GPUs of several machines \(node1, node2\) in one log without uuid"):
        read_text(tmp_path, rows("node1", "node2"))


def test_a_uuid_tells_them_apart(tmp_path: Path) -> None:
    """It names a GPU among those of all machines."""
    assert len(read_text(tmp_path, rows("node1", "node2", uuid=True)).run.gpus) == 2


@pytest.mark.parametrize(("addresses", "apart"), [(("07", "0A"), True), (("07", "07"), False)])
def test_a_bus_id_tells_them_apart_where_it_is_another(
    tmp_path: Path, addresses: tuple[str, str], *, apart: bool
) -> None:
    """Two machines may have their GPUs in different places, or in the same."""
    told = [
        f"2026/03/14 09:00:{tick:02d}.000, node{node}, 00000000:{bus}:00.0, {tick} %"
        for tick in range(10)
        for node, bus in enumerate(addresses)
    ]
    text = lines("timestamp, hostname, pci.bus_id, utilization.gpu [%]", *told)
    if apart:
        assert len(read_text(tmp_path, text).run.gpus) == 2
    else:
        with pytest.raises(SourceError, match=r"several machines \(node0, node1\)"):
            read_text(tmp_path, text)


def test_one_machine_and_a_damaged_name(tmp_path: Path) -> None:
    """A name of which a letter was lost is no other machine."""
    text = rows("node1", ticks=20).replace("05.000, node1", "05.000, nod1")
    assert kept(read_text(tmp_path, text)) == 20

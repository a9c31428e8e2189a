"""Devices of several logs of one run."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.importers.merging.device_plan import plan_devices
from gpureport.importers.merging.node_names import strip_suffixes
from gpureport.importers.merging.shared_devices import LogContents
from gpureport.testing import HOST, Device

HOUR = 3_600_000_000


def gpu(index: int, uuid: str | None = None, bus_id: str | None = None, limit: float | None = None) -> Device:
    """Return a GPU of a log."""
    return Device(id=f"gpu:{index}", index=index, uuid=uuid, bus_id=bus_id, power_limit_watts=limit)


def logged(locator: str, hours: tuple[float, float], *devices: Device, beside: bool = False) -> LogContents:
    """Return a log whose devices were all sampled over the same hours."""
    start, end = hours
    spans = {device.id: (int(start * HOUR), int(end * HOUR)) for device in devices}
    return LogContents(locator=locator, devices=devices, spans=spans, beside=beside)


def test_rotated_logs_go_on() -> None:
    """Logs one after the other hold the same GPUs, whatever the order they are given in."""
    logs = [logged("gpu.csv", (1, 2), gpu(0), gpu(1)), logged("gpu.csv.1", (0, 1), gpu(0), gpu(1))]
    made = plan_devices(logs)
    assert made.order == (1, 0)
    assert made.names == ({"gpu:0": "gpu:0", "gpu:1": "gpu:1"},) * 2
    assert [device.id for device in made.devices] == ["gpu:0", "gpu:1"]


def test_a_log_a_gpu_is_side_by_side() -> None:
    """Logs of the same time that name different GPUs are one machine's."""
    made = plan_devices([logged("a.csv", (0, 1), gpu(0)), logged("b.csv", (0, 1), gpu(1))])
    assert [(device.id, device.node) for device in made.devices] == [("gpu:0", None), ("gpu:1", None)]


def test_a_gpu_is_told_by_its_uuid() -> None:
    """After a reboot the indices may be swapped; the GPUs are not."""
    logs = [
        logged("gpu.csv.1", (0, 1), gpu(0, "A", limit=300), gpu(1, "B")),
        logged("gpu.csv", (1, 2), gpu(0, "B"), gpu(1, "A", limit=250), gpu(2, "C")),
    ]
    made = plan_devices(logs)
    assert made.names[1] == {"gpu:0": "gpu:1", "gpu:1": "gpu:0", "gpu:2": "gpu:2"}
    assert [(device.uuid, device.power_limit_watts) for device in made.devices] == [
        ("A", 250),
        ("B", None),
        ("C", None),
    ]


def test_without_uuids_the_address_tells() -> None:
    """PCI addresses tell GPUs of one machine apart."""
    logs = [
        logged("gpu.csv.1", (0, 1), gpu(0, bus_id="01"), gpu(1, bus_id="02")),
        logged("gpu.csv", (1, 2), gpu(0, bus_id="02"), gpu(1, bus_id="01")),
    ]
    assert plan_devices(logs).names[1] == {"gpu:0": "gpu:1", "gpu:1": "gpu:0"}


def test_another_gpu_in_the_same_place_is_another() -> None:
    """A GPU that was replaced between two logs gets a number of its own."""
    made = plan_devices([logged("gpu.csv.1", (0, 1), gpu(0, "A")), logged("gpu.csv", (1, 2), gpu(0, "B"))])
    assert [(device.id, device.index, device.uuid) for device in made.devices] == [("gpu:0", 0, "A"), ("gpu:1", 1, "B")]


@pytest.mark.parametrize(
    ("locators", "nodes"),
    [
        (("node1.csv", "node2.csv"), ("node1", "node2")),
        (("gpu_node1_20260314.csv.gz", "gpu_node2_20260314.csv.gz"), ("node1", "node2")),
        (("n1/nvidia-smi.csv", "n2/nvidia-smi.csv"), ("n1", "n2")),
        (("n1/a/gpu.csv", "n2/a/gpu.csv"), ("a-gpu.csv-0", "a-gpu.csv-1")),
        (("gpu.csv", "gpu.csv.1"), ("gpu.csv", "gpu.csv.1")),
    ],
)
@pytest.mark.parametrize("uuids", [(None, None), ("A", "B"), ("A", None)])
def test_the_same_id_at_the_same_time_is_two_nodes(
    locators: tuple[str, str], nodes: tuple[str, str], uuids: tuple[str | None, str | None]
) -> None:
    """Two logs that hold `gpu:0` at once come from two machines, named by file or folder."""
    logs = [logged(name, (0, 1), gpu(0, uuid)) for name, uuid in zip(locators, uuids, strict=True)]
    made = plan_devices(logs)
    assert [(device.id, device.node) for device in made.devices] == [(f"{node}/gpu:0", node) for node in nodes]
    assert made.names == tuple({"gpu:0": f"{node}/gpu:0"} for node in nodes)


def test_nodes_whose_logs_were_rotated() -> None:
    """Each node goes on in its own logs, and a host log belongs to the node it bears the name of."""
    logs = [logged(f"{node}.csv{end}", hours, gpu(0)) for node in "ab" for end, hours in (("", (1, 2)), (".1", (0, 1)))]
    logs.append(logged("b-host.csv", (0, 2), Device(id=HOST), beside=True))
    made = plan_devices(logs)
    assert sorted(device.id for device in made.devices) == ["a/gpu:0", "b/gpu:0", "b/host"]


def test_one_host_log_of_no_node_is_everybodys() -> None:
    """A host log that no node's name stands on stays the host."""
    logs = [logged(f"{node}.csv", (0, 1), gpu(0)) for node in ("a", "b")]
    made = plan_devices([*logs, logged("cpu.csv", (0, 1), Device(id=HOST), beside=True)])
    assert [(device.id, device.node) for device in made.devices if device.index is None] == [("host", None)]


@pytest.mark.parametrize(("uuid", "serial"), [("A", None), (None, "1")])
def test_one_gpu_in_two_logs_at_a_time_is_one(uuid: str | None, serial: str | None) -> None:
    """Two recorders on one GPU are not two GPUs, whatever number each has for it."""
    one, other = (replace(gpu(index, uuid), serial=serial) for index in (0, 3))
    made = plan_devices([logged("a.csv", (0, 1), one), logged("b.csv", (0.5, 2), other)])
    assert made.names == ({"gpu:0": "gpu:0"}, {"gpu:3": "gpu:0"})
    assert (len(made.devices), made.notes) == (1, ())


def test_gpus_of_one_board_stay_two() -> None:
    """A serial number is the board's: within one log it makes no two GPUs one, and the index tells which is which."""
    board = tuple(replace(gpu(index), serial="1") for index in (0, 1))
    made = plan_devices([logged("a.csv", (0, 1), *board), logged("b.csv", (0, 1), *reversed(board))])
    assert made.names == ({"gpu:0": "gpu:0", "gpu:1": "gpu:1"}, {"gpu:1": "gpu:1", "gpu:0": "gpu:0"})


def test_logs_that_say_the_same_are_one_machines() -> None:
    """Of three nodes' logs, two that were found alike are one node's, called as the first of them."""
    logs = [logged(f"{name}/gpu.csv", (0, 1), gpu(0)) for name in ("n1", "n2", "copy-of-n1")]
    made = plan_devices(logs, alike={(0, 2)})
    assert [names["gpu:0"] for names in made.names] == ["n1/gpu:0", "n2/gpu:0", "n1/gpu:0"]
    guessed, alike = made.notes
    assert guessed == (
        "n1/gpu.csv, n2/gpu.csv and copy-of-n1/gpu.csv hold the same numbers at the same time with other readings, so "
        "they are taken for logs of several machines: n1 and n2. A uuid among their columns would tell."
    )
    assert alike == (
        "n1/gpu.csv and copy-of-n1/gpu.csv say the same of the time they share, so they are taken for logs of one "
        "machine."
    )


def test_a_note_names_few_of_many_logs() -> None:
    """Sixteen nodes do not make a note of a page."""
    (note,) = plan_devices([logged(f"n{number}/gpu.csv", (0, 1), gpu(0)) for number in range(16)]).notes
    assert note.startswith("n0/gpu.csv, n1/gpu.csv, n2/gpu.csv and 13 more hold the same numbers")
    assert "machines: n0, n1, n2 and 13 more. A uuid" in note


def test_uuids_that_differ_need_no_note() -> None:
    """What is sure is not told as a guess."""
    assert plan_devices([logged(name, (0, 1), gpu(0, name)) for name in ("a.csv", "b.csv")]).notes == ()


def test_a_rotation_may_overlap_by_seconds() -> None:
    """Rows that both rotated logs hold do not make them two nodes."""
    made = plan_devices([logged("gpu.csv.1", (0, 1), gpu(0)), logged("gpu.csv", (1 - 2 / 3600, 2), gpu(0))])
    assert [device.id for device in made.devices] == ["gpu:0"]


@pytest.mark.parametrize(
    ("name", "short"),
    [("gpu.csv.gz", "gpu"), ("gpu.log.2", "gpu"), ("a-20260314_110203.csv", "a"), (".csv", ".csv"), ("n1", "n1")],
)
def test_what_is_left_of_a_name(name: str, short: str) -> None:
    """Suffixes of kind, compression and rotation go."""
    assert strip_suffixes(Path(name).name) == short

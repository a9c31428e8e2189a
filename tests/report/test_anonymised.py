"""Nothing that names people or machines is left in a report that is to be shown."""

from dataclasses import replace
from pathlib import Path

from gpureport.importers import Labels, Placement, Reading, find
from gpureport.recording import Device, Recording
from gpureport.report.anonymised import anonymised
from tests.importers.logs import log

SECRETS = ("anna", "gpu-node-17", "lab.example.org", "10.1.2.3", "/scratch", "projects", "GPU-1fd5ee77")


def recording(folder: Path) -> Recording:
    """Return a run whose every text names somebody or something."""
    (folder / "anna.csv").write_text(log(30))
    params = (("data", "/scratch/anna/imagenet"), ("batch", "64"), ("user", "anna"))
    tags = (("hostname", "gpu-node-17"), ("link", "https://lab.example.org/run/3"), ("from", "10.1.2.3"))
    labels = Labels(name="anna tries gpu-node-17", params=params, tags=tags)
    found = Reading(find(folder / "anna.csv")[0], Placement(), labels).recording()
    notes = ("Read from /home/anna/projects/x.csv on gpu-node-17.",)
    device = Device(id="gpu:0", index=0, uuid="GPU-1fd5ee77-0b3c", model="NVIDIA A40")
    quality = replace(found.run.quality, notes=notes)
    return replace(found, run=replace(found.run, devices=(device,), quality=quality))


def test_names_are_gone_and_values_stay(tmp_path: Path) -> None:
    """What was measured and configured stays; who and where does not."""
    whole = recording(tmp_path)
    shown = anonymised(whole)
    text = repr(shown.run)
    assert [secret for secret in SECRETS if secret in text] == []
    assert dict(shown.run.params)["batch"] == "64"
    assert shown.run.sources[0].locator == "source-1.csv"
    assert shown.series.drop_columns(["device"]).equals(whole.series.drop_columns(["device"]))


def test_nodes_are_numbered_in_rows_as_in_devices(tmp_path: Path) -> None:
    """A node has one number, wherever it stands."""
    for node in ("anna-1", "anna-2"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "gpu.csv").write_text(log(30).replace("GPU-", f"GPU-{node}"))
    inputs = [run[0] for run in find(tmp_path)]
    run = Reading(inputs, Placement(), Labels(), as_one_run=True).recording()
    shown = anonymised(run)
    devices = [device.id for device in shown.run.devices]
    assert "anna" not in repr(shown.run)
    assert sum(len(shown.of(device)) for device in devices) == len(run.series)


def test_a_name_that_is_a_files_is_replaced_and_one_that_was_given_stays(tmp_path: Path) -> None:
    """Runs stay apart all the same."""
    for name in ("dgx01-anna", "dgx02-anna"):
        (tmp_path / f"{name}.csv").write_text(log(30 if name == "dgx01-anna" else 31))
    runs = [Reading(find(tmp_path / f"dgx0{n}-anna.csv")[0], Placement(), Labels()).recording() for n in (1, 2)]
    names = [anonymised(run).run.name for run in runs]
    assert "anna" not in "".join(names)
    assert names[0] != names[1]
    given = Reading(find(tmp_path / "dgx01-anna.csv")[0], Placement(), Labels(name="baseline")).recording()
    assert anonymised(given).run.name == "baseline"

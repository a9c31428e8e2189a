"""Nothing that names people or machines is left in a report that is to be shown."""

from dataclasses import replace
from pathlib import Path

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.label_tags import list_personal_tags
from gpureport.report.runs.anonymisation import anonymise_recordings
from gpureport.testing import Device, Recording, with_training
from tests.importers.written_logs import log

SECRETS = ("anna", "gpu-node-17", "lab.example.org", "10.1.2.3", "/scratch", "projects", "GPU-1fd5ee77")


def recording(folder: Path) -> Recording:
    """Return a run whose every text names somebody or something."""
    (folder / "anna.csv").write_text(log(30))
    params = (("data", "/scratch/anna/imagenet"), ("batch", "64"), ("user", "anna"))
    tags = (("hostname", "gpu-node-17"), ("link", "https://lab.example.org/run/3"), ("from", "10.1.2.3"))
    labels = Labels(name="anna tries gpu-node-17", params=params, tags=tags)
    found = Reading(find_runs(folder / "anna.csv")[0], ReadOptions(), labels).recording()
    notes = ("Read from /home/anna/projects/x.csv on gpu-node-17.",)
    device = Device(id="gpu:0", index=0, uuid="GPU-1fd5ee77-0b3c", model="NVIDIA A40")
    quality = replace(found.run.quality, notes=notes)
    return replace(found, run=replace(found.run, devices=(device,), quality=quality))


def anonymise_recording(recording: Recording) -> Recording:
    """Return a run as the only one of an output."""
    return anonymise_recordings([recording])[0]


def test_names_are_gone_and_values_stay(tmp_path: Path) -> None:
    """What was measured and configured stays; who and where does not."""
    whole = recording(tmp_path)
    shown = anonymise_recording(whole)
    text = repr(shown.run)
    assert [secret for secret in SECRETS if secret in text] == []
    assert dict(shown.run.params)["batch"] == "64"
    assert shown.run.sources[0].locator == "source-1.csv"
    assert shown.series.drop_columns(["device"]).equals(whole.series.drop_columns(["device"]))


def test_labels_of_people_and_machines_are_hidden(tmp_path: Path) -> None:
    """Whose a run is and where it ran is hidden, in notes and in names too; what kind of job it was stays."""
    (tmp_path / "gpu.csv").write_text(log(30))
    tags = (*((name, f"secret-{name}") for name in list_personal_tags()), ("partition", "gpu"), ("job", "4411"))
    tags += (("job_name", "of secret-user"), ("SLURM_JOB_ACCOUNT", "secret-too"), ("hostname", "secret-1, secret-2"))
    found = Reading(find_runs(tmp_path / "gpu.csv")[0], ReadOptions(), Labels(tags=tags)).recording()
    quality = replace(found.run.quality, notes=("It ran on secret-2, secret-pod.",))
    run = anonymise_recording(replace(found, run=replace(found.run, quality=quality))).run
    assert "secret" not in repr(run)
    assert {"user", "account", "node", "pod"} <= set(list_personal_tags())
    assert (dict(run.tags)["job"], dict(run.tags)["partition"]) == ("4411", "gpu")


def test_nodes_are_numbered_in_rows_as_in_devices(tmp_path: Path) -> None:
    """A node has one number, wherever it stands."""
    for node in ("anna-1", "anna-2"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "gpu.csv").write_text(log(30).replace("GPU-", f"GPU-{node}"))
    inputs = [run[0] for run in find_runs(tmp_path)]
    run = Reading(inputs, ReadOptions(), Labels(), as_one_run=True).recording()
    shown = anonymise_recording(run)
    devices = [device.id for device in shown.run.devices]
    assert "anna" not in repr(shown.run)
    assert sum(len(shown.rows_of(device)) for device in devices) == len(run.series)


def test_a_name_that_is_a_files_is_replaced_and_one_that_was_given_stays(tmp_path: Path) -> None:
    """Runs stay apart all the same."""
    for name in ("dgx01-anna", "dgx02-anna"):
        (tmp_path / f"{name}.csv").write_text(log(30 if name == "dgx01-anna" else 31))
    runs = [Reading(find_runs(tmp_path / f"dgx0{n}-anna.csv")[0], ReadOptions(), Labels()).recording() for n in (1, 2)]
    names = [anonymise_recording(run).run.name for run in runs]
    assert "anna" not in "".join(names)
    assert names[0] != names[1]
    given = Reading(find_runs(tmp_path / "dgx01-anna.csv")[0], ReadOptions(), Labels(name="baseline")).recording()
    assert anonymise_recording(given).run.name == "baseline"


def test_a_line_of_the_kernels_log_names_no_host_and_no_process(tmp_path: Path) -> None:
    """What the driver says of the GPU stays."""
    rest = "Ch 00000008, intr 00000000"
    lines = [
        f"May  5 10:01:40 gpu-node-17 kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=4242, name=annas_job, {rest}",
        "gpu-node-17: [ 12.3] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off.",
    ]
    (tmp_path / "gpu.csv").write_text(log(30) + "\n".join(lines) + "\n")
    run = Reading(find_runs(tmp_path / "gpu.csv")[0], ReadOptions(), Labels()).recording()
    named = "pid=<process>, name=<process>"
    assert [event.text for event in anonymise_recording(run).run.quality.log_events] == [
        f"NVRM: Xid (PCI:0000:01:00): 31, {named}, {rest}",
        f"NVRM: Xid (PCI:0000:01:00): 79, {named}, GPU has fallen off.",
    ]


def test_serial_numbers_are_replaced_and_tell_boards_apart(tmp_path: Path) -> None:
    """The serial number of a board names it as a uuid does."""
    found = recording(tmp_path)
    devices = tuple(
        Device(id=f"gpu:{place}", index=place, serial=serial)
        for place, serial in enumerate(("16522", "16522", "16523"))
    )
    shown = anonymise_recording(replace(found, run=replace(found.run, devices=devices)))
    serials = [device.serial for device in shown.run.devices]
    assert "16522" not in serials
    assert serials[0] == serials[1] != serials[2]


def test_a_host_in_the_end_of_a_files_name_is_gone(tmp_path: Path) -> None:
    """`gpu.log.HOST` and `gpu.HOST.csv` are what loggers on many hosts write; what a file is stays."""
    for name, shown in (("gpu.log.anna-1", "source-1.log"), ("gpu.anna-1.csv", "source-1.csv")):
        (tmp_path / name).write_text(log(30))
        run = Reading(find_runs(tmp_path / name)[0], ReadOptions(), Labels()).recording()
        assert anonymise_recording(run).run.sources[0].locator == shown


def test_a_note_names_no_folder_of_a_log(tmp_path: Path) -> None:
    """A path is replaced whole, be it one from the folder one works in."""
    found = recording(tmp_path)
    (source,) = found.run.sources
    quality = replace(found.run.quality, notes=("berta/gpu.csv names no zone.",))
    run = replace(found.run, sources=(replace(source, locator="berta/gpu.csv"),), quality=quality)
    assert anonymise_recording(replace(found, run=run)).run.quality.notes == ("source-1.csv names no zone.",)


def test_metrics_stay_as_many_as_they_were(tmp_path: Path) -> None:
    """Their curves are not joined because what told them apart is hidden."""
    (tmp_path / "gpu.csv").write_text(log(30))
    run = Reading(find_runs(tmp_path / "gpu.csv")[0], ReadOptions(), Labels()).recording()
    names = ["loss 10.1.2.3", "loss 10.1.2.4", "bleu.de"]
    shown = anonymise_recording(with_training(run, [(1.0, name, 0.5) for name in names])).training
    assert shown.column("name").to_pylist() == ["loss <address>", "loss <address> 2", "bleu.de"]


def test_the_pseudonym_of_a_host_is_not_taken_for_another_host(tmp_path: Path) -> None:
    """Machines may be called as pseudonyms are."""
    (tmp_path / "gpu.csv").write_text(log(30))
    tags = (("hosts", "clara01, host-1"), ("note", "clara01.cluster.local before host-1, then <host-1>"))
    found = Reading(find_runs(tmp_path / "gpu.csv")[0], ReadOptions(), Labels(tags=tags)).recording()
    shown = dict(anonymise_recording(found).run.tags)
    assert shown == {"hosts": "host-1, host-2", "note": "host-1 before host-2, then <host-2>"}


def test_no_step_is_shown_like_one_that_stays(tmp_path: Path) -> None:
    """Two steps are two, though one is called as the pseudonym of the other is, and comes later."""
    (tmp_path / "gpu.csv").write_text(log(30))
    found = Reading(find_runs(tmp_path / "gpu.csv")[0], ReadOptions(), Labels(tags=(("host", "clara01"),))).recording()
    runs = [replace(found, run=replace(found.run, step=step)) for step in ("on clara01", "on host-1")]
    assert [one.run.step for one in anonymise_recordings(runs)] == ["on host-1 2", "on host-1"]

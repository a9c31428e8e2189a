"""The tags that say whose a run is and where it ran: user, account, project, job and node.

They come from a table of jobs, from a file beside the log, from the labels of Prometheus, and from the environment of a
recorded job. A run of a tracker may hold them under other names, which are read as well.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class LabelTag(NamedTuple):
    """One such tag, with what it is read from; a page calls it by its name in words."""

    name: str
    title: str
    is_personal: bool
    columns: list[str]
    variables: list[str]
    other_names: list[str]
    series_labels: list[str]


_PERSONAL = {"user", "account", "project", "node", "pod", "namespace"}
"""Tags whose values identify a person, a team or a machine."""
_COLUMNS = {
    "user": "user username user_name owner",
    "account": "account",
    "project": "project project_name",
    "partition": "partition queue",
    "job": "job_id job jobid",
    "job_name": "job_name jobname",
    "job_state": "state job_state status",
    "node": "node_list nodelist nodes node host hosts hostname",
    "pod": "pod pod_name",
    "namespace": "namespace",
    "container": "container",
}
"""Headings of tables that mean a tag, in snake_case: those of `sacct`, and usual ones."""
_VARIABLES = {
    "user": "SLURM_JOB_USER",
    "account": "SLURM_JOB_ACCOUNT",
    "partition": "SLURM_JOB_PARTITION",
    "job": "SLURM_JOB_ID",
    "job_name": "SLURM_JOB_NAME",
    "node": "SLURMD_NODENAME NODE_NAME",
    "pod": "POD_NAME",
    "namespace": "POD_NAMESPACE",
}
"""Environment variables that hold it; the first that is set counts."""
_OTHER_NAMES = {
    "user": "username owner mlflow.user sys/owner",
    "partition": "queue",
    "job": "job_id",
    "node": "host hostname",
}
"""Tags and params of the same meaning, beside the variables; the first of a run counts."""
_SERIES_LABELS = {
    "job": "hpc_job",
    "node": "Hostname hostname node kubernetes_node",
    "pod": "exported_pod pod",
    "namespace": "exported_namespace namespace",
    "container": "exported_container container",
}
"""Labels of series in Prometheus that hold it. `exported_` precedes a label of dcgm-exporter's own where the scrape
sets one of the same name, which then names the exporter."""
LABEL_TAGS = tuple(
    LabelTag(
        name,
        name.replace("_", " ").capitalize(),
        name in _PERSONAL,
        *(words.get(name, "").split() for words in (_COLUMNS, _VARIABLES, _OTHER_NAMES, _SERIES_LABELS)),
    )
    for name in _COLUMNS
)
"""What a run can be labelled with, in the order in which a page lists it."""
BY_NAME = {tag.name: tag for tag in LABEL_TAGS}
BY_COLUMN = {column: tag for tag in LABEL_TAGS for column in tag.columns}


def find_label(params_and_tags: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return what a run is labelled with by its tag or param of this name, else by one that means the same."""
    pairs, tag = dict(params_and_tags), BY_NAME.get(name)
    names = [name, *tag.other_names, *tag.variables] if tag else [name]
    return next((pairs[each] for each in names if pairs.get(each)), None)


def list_personal_tags() -> tuple[str, ...]:
    """Return the names of tags whose values identify a person, a team or a machine."""
    return tuple(tag.name for tag in LABEL_TAGS if tag.is_personal)


def override_pairs(*layers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags of several origins by name; later origins win."""
    return tuple({name: value for layer in layers for name, value in layer}.items())


def merge_pairs(stated: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """Return what parts of a run state by name, values that differ listed."""
    values: dict[str, dict[str, None]] = {}
    for name, value in (pair for pairs in stated for pair in pairs):
        values.setdefault(name, {})[value] = None
    return tuple((name, ", ".join(each)) for name, each in values.items())


def read_environment_labels(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that Slurm and Kubernetes put into the environment, tasks of an array as by `sacct`."""
    found = {tag.name: next(filter(None, map(variables.get, tag.variables)), "") for tag in LABEL_TAGS}
    array, task = (variables.get(f"SLURM_ARRAY_{part}", "") for part in ("JOB_ID", "TASK_ID"))
    if array and task:
        found["job"] = f"{array}_{task}"
    return tuple((name, value) for name, value in found.items() if value)

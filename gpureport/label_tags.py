"""The tags that say whose a run is and where it ran: user, account, project, job and node, under one name each.

They come from a table of jobs, from a file beside the log, from the labels of Prometheus, and from the environment of a
recorded job. A run of a tracker may hold them under other names, which are read as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelTag:
    """One such tag.

    Attributes:
        name: name of the tag.
        title: what a page calls it.
        other_names: names of tags and params that mean the same, beside those of the variables; the first that a run
            has counts.
        columns: headings of tables that mean it, in snake_case: those of `sacct`, and usual ones.
        variables: environment variables that hold it; the first that is set counts.
        series_labels: labels of series in Prometheus that hold it. `exported_` precedes a label of dcgm-exporter's own
            where the scrape sets one of the same name, which then names the exporter.
        is_personal: whether its value identifies a person, a team or a machine.
    """

    name: str
    title: str
    other_names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    series_labels: tuple[str, ...] = ()
    is_personal: bool = False


LABEL_TAGS = (
    LabelTag(
        "user",
        "User",
        other_names=("username", "owner", "mlflow.user", "sys/owner"),
        columns=("user", "username", "user_name", "owner"),
        variables=("SLURM_JOB_USER",),
        is_personal=True,
    ),
    LabelTag("account", "Account", columns=("account",), variables=("SLURM_JOB_ACCOUNT",), is_personal=True),
    LabelTag("project", "Project", columns=("project", "project_name"), is_personal=True),
    LabelTag(
        "partition",
        "Partition",
        other_names=("queue",),
        columns=("partition", "queue"),
        variables=("SLURM_JOB_PARTITION",),
    ),
    LabelTag(
        "job",
        "Job",
        other_names=("job_id",),
        columns=("job_id", "job", "jobid"),
        variables=("SLURM_JOB_ID",),
        series_labels=("hpc_job",),
    ),
    LabelTag("job_name", "Job name", columns=("job_name", "jobname"), variables=("SLURM_JOB_NAME",)),
    LabelTag("job_state", "Job state", columns=("state", "job_state", "status")),
    LabelTag(
        "node",
        "Node",
        other_names=("host", "hostname"),
        columns=("node_list", "nodelist", "nodes", "node", "host", "hosts", "hostname"),
        variables=("SLURMD_NODENAME", "NODE_NAME"),
        series_labels=("Hostname", "hostname", "node", "kubernetes_node"),
        is_personal=True,
    ),
    LabelTag(
        "pod",
        "Pod",
        columns=("pod", "pod_name"),
        variables=("POD_NAME",),
        series_labels=("exported_pod", "pod"),
        is_personal=True,
    ),
    LabelTag(
        "namespace",
        "Namespace",
        columns=("namespace",),
        variables=("POD_NAMESPACE",),
        series_labels=("exported_namespace", "namespace"),
        is_personal=True,
    ),
    LabelTag("container", "Container", columns=("container",), series_labels=("exported_container", "container")),
)
"""What a run can be labelled with, in the order in which a page lists it."""
BY_NAME = {tag.name: tag for tag in LABEL_TAGS}
BY_COLUMN = {column: tag for tag in LABEL_TAGS for column in tag.columns}


def find_label(params_and_tags: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return what a run is labelled with: its tag or param of this name, else of another one that means the same.

    Any other name than those of LABEL_TAGS is looked up as it is. None where the run has no such label.
    """
    pairs = dict(params_and_tags)
    tag = BY_NAME.get(name)
    names = (name, *((*tag.other_names, *tag.variables) if tag else ()))
    return next((pairs[each] for each in names if pairs.get(each)), None)


def list_personal_tags() -> tuple[str, ...]:
    """Return the names of tags whose values identify a person, a team or a machine."""
    return tuple(tag.name for tag in LABEL_TAGS if tag.is_personal)


def override_pairs(*layers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags of several origins by name, each origin before the one that wins over it."""
    return tuple({name: value for layer in layers for name, value in layer}.items())


def merge_pairs(stated: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """Return what several parts of a run state of it by name, values that differ listed."""
    values: dict[str, dict[str, None]] = {}
    for pairs in stated:
        for name, value in pairs:
            values.setdefault(name, {})[value] = None
    return tuple((name, ", ".join(each)) for name, each in values.items())


def read_environment_labels(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that Slurm and Kubernetes put into the environment of a job, by name.

    A task of an array is called as `sacct` calls it: the number of the array, `_`, that of the task.
    """
    labels = {
        tag.name: next((variables[each] for each in tag.variables if variables.get(each)), "") for tag in LABEL_TAGS
    }
    array, task = (variables.get(f"SLURM_ARRAY_{part}", "") for part in ("JOB_ID", "TASK_ID"))
    if array and task:
        labels["job"] = f"{array}_{task}"
    return tuple((name, value) for name, value in labels.items() if value)

"""The tags that say whose a run is and where it ran: user, account, project, job and node.

They come from a table of jobs, from a file beside the log, from the labels of Prometheus, and from the environment of a
recorded job. A run of a tracker may hold them under other names, which are read as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class LabelTag(NamedTuple):
    """A tag, and what holds it: headings of tables, variables of the environment, and labels of series in Prometheus.

    Headings are in snake_case, those of `sacct` and usual ones; tags and params of `other_names` mean the same. The
    first that is set counts. `exported_` precedes a label of dcgm-exporter's own where the scrape sets one of the same
    name, which then names the exporter. A personal one identifies a person, a team or a machine.
    """

    name: str
    columns: Sequence[str]
    variables: Sequence[str] = ()
    other_names: Sequence[str] = ()
    series_labels: Sequence[str] = ()
    is_personal: bool = True

    @property
    def title(self) -> str:
        """What a page calls it."""
        return self.name.replace("_", " ").capitalize()


LABEL_TAGS = (
    LabelTag(
        "user",
        ["user", "username", "user_name", "owner"],
        ["SLURM_JOB_USER"],
        ["username", "owner", "mlflow.user", "sys/owner"],
    ),
    LabelTag("account", ["account"], ["SLURM_JOB_ACCOUNT"]),
    LabelTag("project", ["project", "project_name"]),
    LabelTag("partition", ["partition", "queue"], ["SLURM_JOB_PARTITION"], ["queue"], is_personal=False),
    LabelTag("job", ["job_id", "job", "jobid"], ["SLURM_JOB_ID"], ["job_id"], ["hpc_job"], is_personal=False),
    LabelTag("job_name", ["job_name", "jobname"], ["SLURM_JOB_NAME"], is_personal=False),
    LabelTag("job_state", ["state", "job_state", "status"], is_personal=False),
    LabelTag(
        "node",
        ["node_list", "nodelist", "nodes", "node", "host", "hosts", "hostname"],
        ["SLURMD_NODENAME", "NODE_NAME"],
        ["host", "hostname"],
        ["Hostname", "hostname", "node", "kubernetes_node"],
    ),
    LabelTag("pod", ["pod", "pod_name"], ["POD_NAME"], series_labels=["exported_pod", "pod"]),
    LabelTag("namespace", ["namespace"], ["POD_NAMESPACE"], series_labels=["exported_namespace", "namespace"]),
    LabelTag("container", ["container"], series_labels=["exported_container", "container"], is_personal=False),
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

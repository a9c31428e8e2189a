"""The help, options and arguments of all commands.

A command is a function in a module of `commands`, called `first_second` if the command has two words. `takes` lists up
to ten common options and, after a slash, those shown only by --help-all. `!` marks a required option, and `@` a group.
"""

from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


MODULES = {
    **dict.fromkeys(("analyze", "check", "compare", "demo", "report", "try"), "analyses"),
    **dict.fromkeys(("baseline", "ingest", "runs"), "stored"),
    **dict.fromkeys(("completion", "explain", "publish", "record"), "others"),
}


class Entry(NamedTuple):
    summary: str
    more: str = ""
    example: str = ""
    takes: str = "store"
    arguments: tuple[click.Argument, ...] = ()

    @property
    def line(self) -> str:
        return f"{self.summary.partition('.')[0]}."

    @property
    def help(self) -> str:
        example = f"Example: gpureport {self.example}" if self.example else ""
        select = " Without sources, --where and --since select stored runs." if "@PICK" in self.takes else ""
        more = "\n".join(map(str.strip, self.more.splitlines()))
        return "\n\n".join(filter(None, (self.summary, example, more + select)))


def _take(names: str, metavar: str | None = None) -> tuple[click.Argument, ...]:
    """Return arguments. `?` marks an optional argument, `+` one or more, and `*` any number."""
    return tuple(
        click.Argument(
            [name.rstrip("?+*")],
            nargs=-1 if name[-1] in "+*" else 1,
            required=name[-1] not in "?*",
            metavar=metavar,
            shell_complete=complete_files if name[-1] in "+*" else None,
        )
        for name in names.split()
    )


_STEPS = """is a log, a folder of logs, a stored run, or a baseline. Runs of one step are repetitions. A run without a
step label is a separate step. If there are several sources, a folder of several recordings from `gpureport record` is
one step; `--by folder` also combines other logs in the same folder into one step."""
COMMANDS = {
    "record": Entry(
        "Record the GPUs and the machine while a job runs.",
        """The folder contains logs of the GPUs, the machine and the job's processes. Without COMMAND, record until
        Ctrl-C. The exit code is COMMAND's, or 0 if there is none. If nvidia-smi is missing, COMMAND does not start,
        and the exit code is 3. Passwords and tokens in COMMAND are not recorded.""",
        "record -o runs/base -- python train.py --epochs 3",
        "folder record_interval host_only",
        (click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]"),),
    ),
    "report": Entry(
        "Write a report on one run, or on several runs as steps.",
        f"""A SOURCE {_STEPS} The report shows whether the run passes the rules in the settings ([[policy]]). The
        exit code is 1 if a --fail-on rule is broken.""",
        "report gpu.csv -o report.html --open",
        "outputs! opened title detail anonymise fail_on by step gpu_hour_price host / steps @PICK @ALL",
        _take("source*"),
    ),
    "analyze": Entry(
        "Show where the GPU time of a run went, and why.",
        """A SOURCE is a log, a folder of logs, or a stored run.""",
        "analyze gpu.csv",
        "form text_detail fail_on select gpu_hour_price host training tz gpus job / anonymise @PICK @ALL",
        _take("source*"),
    ),
    "compare": Entry(
        "Compare runs, each step with the one before it.",
        f"""Each of BASE and NEXT {_STEPS} Two single runs cannot confirm a change, so repeat each step three times. An
        unreadable log in a folder is reported and left out.""",
        "compare runs/base runs/workers",
        "form text_detail by steps step work gpu_hour_price host training target throughput / anonymise @PICK @ALL",
        _take("source*", "[BASE NEXT...]"),
    ),
    "try": Entry(
        "Try settings of a job, and say which is best.",
        """Every setting is recorded in several rounds, each in random order. In COMMAND, {NAME} becomes the value
        of a setting, and {folder} the folder of the run. The first value of each setting is the current one.
        After an interruption, the same command continues the trial. The exit code is 0 if a setting is chosen, 1 if
        every setting failed or lowers quality, and 4 if there is no clear best setting.""",
        "try -o trial --set workers=2,4,8 -- python train.py --workers {workers}",
        "folder sets basis repeat budget target work host_only / design record_interval better throughput store config",
        (click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND..."),),
    ),
    "check": Entry(
        "Check runs against rules. The exit code is 0 if every rule passes.",
        """Exit code 1 means that a rule is broken, 4 that a rule cannot be assessed (a source is missing, too short, or
        lacks the metric), and 5 that gpureport itself failed on a run. Rules come from [[policy]] in gpureport.toml,
        from the --policy file, and from --fail-on. Every run in a SOURCE (a log, a folder of logs, a stored run) is
        checked separately; a rule on changes treats runs with the same --step as repetitions.""",
        "check gpu.csv --fail-on 'idle_ratio <= 5%'",
        "gate_form fail_on baseline policy junit summary work step host training / anonymise exports store @ALL",
        _take("source+"),
    ),
    "nightly": Entry(
        "Keep a history of nightly runs, write its pages, and check them.",
        """A missing or unreadable SOURCE is recorded as a night without data. Without a SOURCE, the pages are rewritten
        from the history. Each step (--step) on each GPU model has its own curves. The rules in [[policy]], --policy
        and --fail-on are checked as in `gpureport check`, with the same exit codes; changes are measured against
        --baseline.""",
        "nightly runs/tonight --site site",
        "site! label night fail_on fail_on_change fail_on_standing_change baseline summary work training / anonymise "
        "all_reports policy junit step store @ALL",
        _take("source*"),
    ),
    "fleet": Entry(
        "Show who wastes GPU time across many runs, and which GPU is faulty.",
        """Without a SOURCE, the report covers all stored runs, or those that --tag, --where and --since select. Logs
        and folders of logs are read into the store first. Only new runs are analysed, with one process per core or on a
        Dask cluster. A run that cannot be analysed is reported and left out.""",
        "fleet --since 30d -o fleet.html",
        "outputs opened form text_detail group_by where since store gpu_hour_price config / gpu_hours_per_month "
        "anonymise engine scheduler @READ",
        _take("source*"),
    ),
    "ingest": Entry(
        "Read logs into the store, and say what was kept and why.",
        """A SOURCE is a log, compressed or not, or a folder of logs. A run that is already stored is not read again,
        and keeps its labels unless options change them.""",
        "ingest gpu.csv --name base",
        "force listing store host training as_one_run tz name step param / anonymise @READ",
        _take("source+"),
    ),
    "runs": Entry(
        "List, show, label, export or remove stored runs.",
        "",
        "runs show base",
    ),
    "runs export": Entry("Copy the series of a run to a Parquet file.", takes="output! store", arguments=_take("run")),
    "runs list": Entry(
        "List the runs, oldest first.",
        "",
        "runs list --since 30d --tag user=ann --where gpus>=8",
        "list_form tagged where since store",
    ),
    "runs rename": Entry("Rename a run.", arguments=_take("run name")),
    "runs rm": Entry("Remove runs.", arguments=_take("run+")),
    "runs show": Entry("Print a run's metadata as JSON.", arguments=_take("run")),
    "runs step": Entry("Set the optimisation step of a run.", arguments=_take("run label")),
    "baseline": Entry(
        "Set, list or remove named baselines.",
        """A baseline is a copy of one run, or of several repetitions, in the `baselines` folder of the store. A
        baseline can be kept in git, in an artifact or in a bucket without the rest of the store.""",
        "baseline set main runs/base",
    ),
    "baseline list": Entry(
        "List the baselines by name.",
    ),
    "baseline rm": Entry("Remove baselines, but not the runs they were copied from.", arguments=_take("name+")),
    "baseline set": Entry(
        "Create or replace the baseline NAME with copies of runs. Several runs are repetitions of one step.",
        """A SOURCE is a stored run, or a log or folder of logs, which is ingested first.""",
        "",
        "store host training as_one_run tz work name step param tag / anonymise @READ",
        (*_take("baseline_name", "NAME"), *_take("source+")),
    ),
    "publish": Entry(
        "Publish reports and figures to a folder, a bucket or MLflow.",
        """The prefix mlflow: is optional for a database or an mlruns folder.

        For a run in MLflow, each FILE becomes an artifact and, over http, is named in a tag.

        An MLflow store accepts the JSON from `gpureport compare`. Each compared run receives its figures as metrics,
        and its step, verdict and change as tags. Every other FILE becomes an artifact of each run. Publishing again
        changes nothing.""",
        "publish report.html --to mlflow:mlruns#RUN",
        "targets! skip_missing follow_artifact_uri",
        _take("files+", "FILE..."),
    ),
    "explain": Entry(
        "Explain a check, a metric, or what to record.",
        """For a check, print the condition, the required metrics and the steps to take; --detail full adds all limits
        with their sources and all advice. For a class of GPU time (short_pauses), a metric, an nvidia-smi field, or a
        figure of a run (idle_ratio), print the meaning. `gpureport explain recording` prints commands that record
        enough for every check. Without a name, list everything that can be explained.""",
        "explain idle_gap",
        "explained_detail config",
        _take("name?", "[CHECK|CLASS|METRIC|FIGURE|recording]"),
    ),
    "demo": Entry(
        "Compare the five steps of a sample job that waits for data.",
        """The logs were recorded on an NVIDIA H100, three runs per step. The path to more samples is printed.""",
        "demo -o report.html --open",
        "outputs opened text_detail",
    ),
    "completion": Entry(
        "Print the script for Tab completion in the shell.",
        """Without SHELL, print the line that installs the script.

        Example: eval "$(gpureport completion bash)"
        """,
        "",
        "",
        (click.Argument(["shell"], required=False, type=click.Choice(["bash", "zsh", "fish"])),),
    ),
}

"""`gpureport publish`."""

import click

from gpureport.cli.command import command
from gpureport.cli.messages import print_note
from gpureport.cli.options import Options, complete_files
from gpureport.places import parse_place


@command(
    "publish", click.Argument(["files"], metavar="FILE...", nargs=-1, required=True, shell_complete=complete_files)
)
def publish(files: tuple[str, ...], options: Options) -> None:
    """Put reports and figures where people look.

    Example: gpureport publish report.html --to mlflow:mlruns#RUN

    The path of a database or a mlruns folder needs no mlflow: before it.

    A run of MLflow gets each FILE as an artifact and, over http, a tag that names it.

    A store of MLflow takes the JSON of `gpureport compare`. Each run of the comparison gets its figures as metrics, and
    its step, verdict and change as tags. Other FILEs become artifacts of each of these runs. Publishing the same again
    changes nothing.
    """
    from gpureport.publishing import prepare  # noqa: PLC0415 - loads the readers of trackers

    puts = prepare(
        [*map(parse_place, files)],
        options.targets,
        skip_missing=options.skip_missing,
        follow_artifact_uri=options.follow_artifact_uri,
    )
    for put in puts:
        print_note(f"published {put()}")

"""`gpureport publish`."""

from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.place_type import PLACE

if TYPE_CHECKING:
    from gpureport.places import Place


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PLACE)
@click.option(
    "--to",
    "targets",
    multiple=True,
    required=True,
    metavar="TARGET",
    help="A folder, one of a bucket (s3://BUCKET/FOLDER), a run of MLflow (mlflow:STORE#RUN), or the store of compared "
    "runs (mlflow:STORE); repeatable.",
)
@click.option("--skip-missing", is_flag=True, help="Leave out runs of the comparison that the store does not have.")
@click.option(
    "--follow-artifact-uri",
    is_flag=True,
    help="Write to the folder that a store of MLflow names for artifacts, even if it lies outside the store.",
)
def publish(
    *, files: "tuple[Place, ...]", targets: tuple[str, ...], skip_missing: bool, follow_artifact_uri: bool
) -> None:
    """Put reports and figures where people look.

    Example: gpureport publish report.html --to mlflow:mlruns#RUN

    The path of a database or a mlruns folder needs no mlflow: before it.

    A run of MLflow gets each FILE as an artifact and, over http, a tag that names it.

    A store of MLflow takes the JSON of `gpureport compare`. Each run of the comparison gets its figures as metrics, and
    its step, verdict and change as tags. Other FILEs become artifacts of each of these runs. Publishing the same again
    changes nothing.
    """
    from gpureport.publishing import prepare  # noqa: PLC0415 - loads the readers of trackers

    for put in prepare(files, targets, skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri):
        print_note(f"published {put()}")

"""`gpureport publish`."""

from pathlib import Path

import click

from gpureport.cli.messages.verbosity import print_note


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "targets",
    multiple=True,
    required=True,
    metavar="TARGET",
    help="A folder, or a run of MLflow: mlflow:STORE#RUN (repeatable).",
)
def publish(*, file: Path, targets: tuple[str, ...]) -> None:
    """Put a report where people look.

    A run of MLflow gets FILE as an artifact and, over http, a tag that names it. A database of MLflow is not changed.
    """
    from gpureport.publishing import publish as publish_one  # noqa: PLC0415 - loads the readers of trackers

    for target in targets:
        print_note(f"published {publish_one(file, target)}")

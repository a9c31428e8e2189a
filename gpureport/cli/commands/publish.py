"""`gpureport publish`."""

from gpureport.cli.messages import print_note
from gpureport.cli.options import Options
from gpureport.places import parse_place
from gpureport.publishing import prepare


def publish(files: tuple[str, ...], options: Options) -> None:
    """Put files to every target."""
    puts = prepare(
        [*map(parse_place, files)],
        options.targets,
        skip_missing=options.skip_missing,
        follow_artifact_uri=options.follow_artifact_uri,
    )
    for put in puts:
        print_note(f"published {put()}")

"""Where runs, reports and logs lie: a path of this machine, or an object or folder of a bucket.

`buckets` reaches what lies in a bucket, and writes files whole; `written_paths` says which paths a command may write.
"""

from pathlib import Path

from gpureport.places.buckets import Place, RemotePath, fetch, is_bucket_url, map_places, parse_place

__all__ = ["Place", "RemotePath", "fetch", "find_shipped_folder", "is_bucket_url", "map_places", "parse_place"]


def find_shipped_folder(name: str) -> Path:
    """Return a folder that ships with the package: a wheel carries it inside, a checkout has it beside the package."""
    package = Path(__file__).parents[1]
    return package / name if (package / name).is_dir() else package.parent / name

"""Places of runs, reports and logs: a path on this machine, or an object or folder in a bucket.

`buckets` reads and writes objects, and writes files atomically; `written_paths` checks which paths may be written.
"""

from pathlib import Path

from gpureport.places.buckets import Place, RemotePath, is_bucket_url, map_places, parse_place

__all__ = ["Place", "RemotePath", "find_shipped_folder", "is_bucket_url", "map_places", "parse_place"]


def find_shipped_folder(name: str) -> Path:
    """Return a folder that ships with the package: inside it in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    return package / name if (package / name).is_dir() else package.parent / name

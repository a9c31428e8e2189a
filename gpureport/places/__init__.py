"""Where runs, reports and logs lie: a path of this machine, or an object or folder of a bucket.

`buckets` reaches what lies in a bucket, with `bucket_errors` for what goes wrong there, `transfer` fetches it and sends
folders, `part_files` writes files here whole or not at all, `written_paths` says which paths a command may write.
"""

from gpureport.places.buckets import Place, RemotePath, is_bucket_url, is_place, map_places, parse_place

__all__ = ["Place", "RemotePath", "is_bucket_url", "is_place", "map_places", "parse_place"]

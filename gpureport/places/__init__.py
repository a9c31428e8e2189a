"""Where runs, reports and logs lie: a path of this machine, or an object or folder of a bucket.

Imports the errors. pyarrow is loaded when a bucket is first reached.
A module that reaches buckets goes here; what it writes and reads is the business of the other rooms.
"""

from gpureport.places.remote_path import RemotePath
from gpureport.places.urls import Place, is_bucket_url, parse_place

__all__ = ["Place", "RemotePath", "is_bucket_url", "parse_place"]

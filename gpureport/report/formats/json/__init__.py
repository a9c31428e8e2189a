"""JSON documents: of the report, of `analyze`, and of `compare`."""

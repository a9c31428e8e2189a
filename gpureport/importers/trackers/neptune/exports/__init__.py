"""Parquet files that neptune-exporter wrote."""

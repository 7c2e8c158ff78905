"""Stores in a folder of Parquet files."""

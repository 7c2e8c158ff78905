"""Millions of reports as columns: in memory, in Parquet files, and as wire bytes."""

from deniable.extras import needs_packages

with needs_packages("deniable.columns"):
    from deniable.columns.batch import Column, ReportBatch, from_wire, to_wire
    from deniable.columns.files import read, scan, write

__all__ = ["Column", "ReportBatch", "from_wire", "read", "scan", "to_wire", "write"]

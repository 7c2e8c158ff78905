"""Backends that process shards of reports: threads, a Dask cluster, a GPU."""

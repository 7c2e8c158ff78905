"""A Dask cluster as a backend."""

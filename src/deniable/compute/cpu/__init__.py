"""The default backend: threads, NumPy and compiled loops in the memory of this process."""

"""Where shards of reports are processed, and the likelihood rows that are held there."""

"""Where shards of reports are worked on."""

"""Programs that look at the source itself."""

"""Discovery in a domain that is small enough to test every string."""

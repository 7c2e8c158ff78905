"""Joint tables by maximum likelihood."""

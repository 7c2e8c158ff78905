"""Joint tables of several questions, by maximum likelihood."""

"""Count set bits and pairs of set bits."""

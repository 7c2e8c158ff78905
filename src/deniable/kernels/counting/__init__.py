"""Counts of bits and of pairs of bits."""

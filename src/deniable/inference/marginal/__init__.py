"""Marginals: how common each candidate is, estimated from counts."""

"""Compute likelihood rows, and pass over them."""

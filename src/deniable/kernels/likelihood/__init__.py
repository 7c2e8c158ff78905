"""Likelihood rows, and passes over them."""

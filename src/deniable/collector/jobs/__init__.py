"""Analyses that analysts start over HTTP, each in a separate process."""

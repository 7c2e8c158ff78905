"""Analyses that run on request, each in a process of its own."""

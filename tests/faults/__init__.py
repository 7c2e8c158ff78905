"""Faults on purpose: killed processes, cut connections."""

"""Comparisons with other programs for the same work: python -m benchmarks.peers"""

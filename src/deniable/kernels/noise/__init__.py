"""Randomised response of many simulated reports at once."""

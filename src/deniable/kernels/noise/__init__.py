"""Randomised response of many reports at once."""

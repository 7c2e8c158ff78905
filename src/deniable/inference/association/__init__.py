"""Tests of independence and effect sizes."""

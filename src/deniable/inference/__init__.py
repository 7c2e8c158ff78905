"""Estimation from arrays: models, marginals, joint tables and tests; knows no surveys or files."""

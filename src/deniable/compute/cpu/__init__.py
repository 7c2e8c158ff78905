"""Likelihood rows and linear systems in this process's memory: the default backend."""

"""Compiled inner loops: pure functions of arrays, run without the interpreter lock."""

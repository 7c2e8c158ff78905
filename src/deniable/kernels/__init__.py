"""Compiled inner loops: pure functions of arrays that run without the interpreter lock."""

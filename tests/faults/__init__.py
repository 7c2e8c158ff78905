"""Faults that a collector must survive: kills, cut connections, overload, full disks, bad input.

Each file tests one fault: a function inflicts it a given number of times and returns counts, and a
test calls it a few times. `python -m tests.faults.campaign` does so at full length, and also checks
time limits (`timed`), which tests on a shared machine cannot.
"""

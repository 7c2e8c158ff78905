"""What a collector meets in its life: kills, cuts, floods, full disks, nonsense.

Each file holds one fault: a function that inflicts it a given number of times and returns what it
saw, and a test that does so a few times. `python -m tests.faults.campaign` does it in earnest, and
holds it to bars of time too (`timed`), which tests on a shared machine cannot.
"""

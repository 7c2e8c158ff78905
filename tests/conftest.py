"""Settings for the whole suite.

tests/bare runs in an environment of its own: see test_bare_environment.py.
"""

from hypothesis import settings

collect_ignore = ["bare"]

# Machines are shared: how long an example takes is never a reason to fail.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

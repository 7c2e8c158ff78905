"""Settings for the whole suite.

tests/bare runs in an environment of its own: see test_bare_environment.py.
"""

import os

from hypothesis import settings

collect_ignore = ["bare"]

# Machines are shared: how long an example takes is never a reason to fail.
# On a developer's machine every run looks at new examples; in CI they stay the same.
settings.register_profile("untimed", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("untimed")

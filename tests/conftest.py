"""tests/bare runs in an environment of its own: see test_bare_environment.py."""

collect_ignore = ["bare"]

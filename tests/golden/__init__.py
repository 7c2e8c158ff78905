"""Golden cases: estimates, errors and tests of stored reports, compared with recorded ones."""

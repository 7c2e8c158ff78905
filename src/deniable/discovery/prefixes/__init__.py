"""Unknown strings from reported prefixes."""

"""Discovery from prefixes."""

"""One view per type of result; `deniable.render` imports them all."""

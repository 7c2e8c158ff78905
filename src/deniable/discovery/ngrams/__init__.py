"""Discovery from n-grams: the paper's reading and the default one."""

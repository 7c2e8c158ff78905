"""How likely the searches are to find a string of a given mass."""

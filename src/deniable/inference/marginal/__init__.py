"""How common each candidate is, from counts."""

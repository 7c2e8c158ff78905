"""Files, analyses and commands of google/rappor."""

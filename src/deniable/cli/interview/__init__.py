"""How `deniable init` asks for a survey: steps, checks of each answer, and unfinished answers."""

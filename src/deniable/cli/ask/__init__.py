"""Commands that prepare a survey."""

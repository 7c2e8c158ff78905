"""Commands that check and reproduce."""

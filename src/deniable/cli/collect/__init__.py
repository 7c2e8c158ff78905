"""Commands that collect and keep reports."""

"""Commands that answer a survey and send the reports."""

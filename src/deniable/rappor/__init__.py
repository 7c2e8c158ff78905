"""Moving over from google/rappor: its parameters, maps and reports become a survey and reports."""

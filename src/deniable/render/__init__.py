"""Results as text, plots and web pages."""

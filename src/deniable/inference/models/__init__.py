"""What reports of each category look like: one model per way of reporting."""

"""All routes except uploads and jobs, and the answers to refused requests."""

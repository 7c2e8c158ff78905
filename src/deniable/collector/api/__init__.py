"""Every route but the upload, and how requests are refused."""

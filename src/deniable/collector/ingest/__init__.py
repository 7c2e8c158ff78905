"""Uploads, from the bytes of a request to durable reports."""

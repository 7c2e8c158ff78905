"""From a request's bytes to a durable upload."""

"""Stores in a database: SQLite and PostgreSQL."""

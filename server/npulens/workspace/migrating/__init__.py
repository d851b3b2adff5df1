"""Migrating trees, and how much is left to people."""

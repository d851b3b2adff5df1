"""Fixes for what was found."""

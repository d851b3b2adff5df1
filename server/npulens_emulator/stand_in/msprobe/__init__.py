"""Stands in for msprobe in a verified run."""

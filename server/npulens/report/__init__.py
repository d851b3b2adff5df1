"""Findings as text: for people, for programs, and the pages of the rules."""

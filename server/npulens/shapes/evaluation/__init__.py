"""Evaluates functions on shapes: expressions, calls, statements, branches and loops."""

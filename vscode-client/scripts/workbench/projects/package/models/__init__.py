"""A model, its data, and a script that trains it."""

"""Documents, positions and spans: text and nothing about Python or NPUs."""

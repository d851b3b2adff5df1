"""Finding, reading and writing files and trees, so that nothing is ever half-written."""

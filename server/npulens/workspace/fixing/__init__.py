"""From a file and its findings to what it should hold instead."""

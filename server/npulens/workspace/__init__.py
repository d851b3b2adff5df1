"""Many files at once: configuration, discovery, and running the engine over them."""

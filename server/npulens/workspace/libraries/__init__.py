"""What the APIs of a library lead to."""

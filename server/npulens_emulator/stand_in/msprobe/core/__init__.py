"""What msprobe has for all frameworks."""

"""Shapes that depend on data, and the places where the host waits for the device."""

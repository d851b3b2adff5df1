"""Precision: autocast, scalers, apex, double precision."""

"""Stands in for apex where an original runs on the CPU."""

from apex import amp, optimizers

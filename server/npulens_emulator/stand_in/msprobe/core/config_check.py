"""The check of configurations."""

from npulens_emulator.precision_tools import ConfigChecker as ConfigChecker

"""What msprobe has for PyTorch."""

from npulens_emulator.precision_tools import PrecisionDebugger as PrecisionDebugger
from npulens_emulator.precision_tools import TrainerMon as TrainerMon
from npulens_emulator.precision_tools import seed_all as seed_all

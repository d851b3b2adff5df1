from npulens_emulator.profiler import *
from npulens_emulator.profiler import __getattr__, _ExperimentalConfig

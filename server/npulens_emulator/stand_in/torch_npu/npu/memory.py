from npulens_emulator.npu.memory import *

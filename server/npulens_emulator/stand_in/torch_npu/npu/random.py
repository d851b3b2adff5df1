from npulens_emulator.npu.random import *

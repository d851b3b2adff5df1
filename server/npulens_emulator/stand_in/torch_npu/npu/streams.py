from npulens_emulator.npu.streams import *

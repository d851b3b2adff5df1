from npulens_emulator.contrib.module import NpuDropPath

from npulens_emulator.npu.amp import autocast, custom_bwd, custom_fwd

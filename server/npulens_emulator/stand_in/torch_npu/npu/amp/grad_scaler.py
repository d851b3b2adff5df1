from npulens_emulator.npu.amp import GradScaler

from npulens_emulator.memory import current_device
from npulens_emulator.npu.devices import *
from npulens_emulator.npu.options import is_bf16_supported
from npulens_emulator.npu.streams import current_stream, default_stream, set_stream, stream

from .stream import stream_loader

"""The bytes between client and server: streams, frames, who may connect, the base protocol."""

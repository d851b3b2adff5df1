"""Running what was migrated on the emulated NPU, and what came of it."""

from pathlib import Path

ROOT = Path("data")

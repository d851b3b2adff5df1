"""Put the server with all its packages into a folder, for the VS Code extension of one platform.

    python scripts/bundle_server.py linux-x64 vscode-client/bundled
    python scripts/bundle_server.py universal vscode-client/bundled

What is the same for all Pythons goes to `common`, the rest, such as compiled packages, to a folder
for each: `cp310`, `cp311` and so on. What scripts need that are run on the emulated NPU goes to
`emulator`, since they shall find nothing else. The universal bundle has nothing compiled and runs
anywhere: what is compiled is quicker there, but works without. Needs uv, which picks wheels for
machines other than this one.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "linux-x64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "alpine-x64": "x86_64-unknown-linux-musl",
    "alpine-arm64": "aarch64-unknown-linux-musl",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
    "win32-x64": "x86_64-pc-windows-msvc",
    "win32-arm64": "aarch64-pc-windows-msvc",
}
"""How VS Code calls a platform, and how uv does."""
_UNIVERSAL = ("3.10", "win32-x64")
"""Where npulens needs all of the packages that it needs anywhere."""
_COMPILED = ("*.so", "*.pyd", "*.c", "*.lib")
_ONLY_COMPILED = ("libcst",)
"""What does nothing without its compiled part; the command that needs it says so."""
_EMULATOR = "npulens_emulator"
_NOT_NEEDED = ("bin", ".lock", "Scripts")


def main() -> None:
    """Make the bundle anew."""
    parser = argparse.ArgumentParser(description="Bundle the server for the VS Code extension.")
    parser.add_argument("platform", choices=("universal", *PLATFORMS))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        _uv("build", "--wheel", "--out-dir", str(work / "wheel"), str(ROOT))
        wheel = next((work / "wheel").glob("npulens-*.whl"))
        version = re.match(r"npulens-([^-]+)-", wheel.name)
        assert version is not None
        told: dict[str, object] = {"version": version[1], "platform": options.platform}
        shutil.rmtree(options.folder, ignore_errors=True)
        options.folder.mkdir(parents=True)
        if options.platform == "universal":
            python, platform = _UNIVERSAL
            _install(wheel, python, PLATFORMS[platform], options.folder / "common")
            _leave_out_compiled(options.folder / "common")
        else:
            trees = {tag_of(python): work / tag_of(python) for python in PYTHONS}
            for python in PYTHONS:
                _install(wheel, python, PLATFORMS[options.platform], trees[tag_of(python)])
            share(trees, options.folder)
            told["pythons"] = list(trees)
    (options.folder / "emulator").mkdir()
    shutil.move(options.folder / "common" / _EMULATOR, options.folder / "emulator")
    (options.folder / "bundle.json").write_text(json.dumps(told) + "\n", encoding="utf-8")


def tag_of(python: str) -> str:
    """The folder for a version of Python: `cp310` for `3.10`."""
    return "cp" + python.replace(".", "")


def share(trees: dict[str, Path], folder: Path) -> None:
    """Move what is the same in all trees to `common`, and the rest to a folder for each."""
    names = sorted({each.name for tree in trees.values() for each in tree.iterdir()})
    for name in names:
        found = {tag: tree / name for tag, tree in trees.items() if (tree / name).exists()}
        is_common = (
            len(found) == len(trees) and len({_digest(path) for path in found.values()}) == 1
        )
        for tag, path in found.items():
            target = folder / ("common" if is_common else tag) / name
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.move(path, target)


def _leave_out_compiled(folder: Path) -> None:
    """Leave the Python that packages fall back to."""
    for pattern in _COMPILED:
        for path in list(folder.rglob(pattern)):
            path.unlink()
    for name in _ONLY_COMPILED:
        shutil.rmtree(folder / name)


def _install(wheel: Path, python: str, platform: str, target: Path) -> None:
    _uv(
        *("pip", "install", "--quiet", "--target", str(target), "--link-mode", "copy"),
        *("--python-version", python, "--python-platform", platform, "--only-binary", ":all:"),
        str(wheel),
    )
    for name in _NOT_NEEDED:
        path = target / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for tests in list(target.rglob("tests")):
        shutil.rmtree(tests, ignore_errors=True)
    for record in target.glob("*.dist-info"):
        for name in ("RECORD", "REQUESTED", "INSTALLER", "direct_url.json", "uv_cache.json"):
            (record / name).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    """The same for the same file, or for folders with the same files."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            content = file.read_bytes()
            digest.update(f"{file.relative_to(path.parent)}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def _uv(*arguments: str) -> None:
    # Certificates are those of the system, as for pip; uv called this differently before.
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    subprocess.run([sys.executable, "-m", "uv", *arguments], check=True, env=environment)


if __name__ == "__main__":
    main()

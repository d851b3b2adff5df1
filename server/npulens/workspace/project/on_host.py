"""Scripts that name no device, so that whatever they compute stays in the memory of the host.

Porting them changes nothing about that: nothing waits there, and no shape has to be compiled.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Flag, auto
from pathlib import Path

from npulens.workspace.index.contents import Content, Contents, Modules
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import imported_names
from npulens.workspace.index.module_files import all_reached
from npulens.workspace.index.re_exports import PACKAGE
from npulens.workspace.project.training_scripts import is_test
from npulens.workspace.project.unused import runs_alone, runs_something
from npulens.workspace.project.unused_modules import imports_made_up_names

_TORCH = b"torch"
_CUDA = b"cuda"
"""By far the most scripts that use a device name this one."""
_NAMES_ONE = re.compile(
    rb"cuda|CUDA|[gG][pP][uU]|\b(?:npu|tpu|hpu|mps|mlu|musa|xla)|xpu|rocm|vulkan|directml"
    rb"|[aA]ccelerat|nccl|DataParallel|default_tensor_type|device_map|create_loader|privateuse"
)
"""Devices, and what moves a model to one; a line that is commented out shall run at times."""
_CPU = rb"(?:[\"']cpu[\"']|torch\.device\(\s*[\"']cpu[\"']\s*\))"
_NAMED = rb"(?<![\w.\"'-])(?:self\.)?device"
_OF_HOST = re.compile(
    rb"%(named)b\s*(?::\s*torch\.device\s*)?=\s*(?:%(cpu)b|(?:\w+\.)?device\b)"
    rb"|%(named)b\b(?!\s*=(?!=))|:\s*torch\.device\b|%(cpu)b"
    rb"|\.to\(\s*(?:%(cpu)b|(?:\w+\.)?(?:device|dtype)\b|torch\.(?!device)\w+)"
    % {b"named": _NAMED, b"cpu": _CPU}
)
"""A device that is the CPU, or that comes from elsewhere in the script."""
_OF_OBJECT = re.compile(rb"\b(?!(?:torch|self)\b)\w+\.device\b")
"""That of a tensor, or one that settings say."""
_SETTINGS = re.compile(
    rb"argparse|\bargv\b|environ|getenv|\b(?:yaml|json|tomllib|toml|pickle|configparser|hydra)\b"
    rb"|omegaconf|ml_collections|\b(?:click|typer|fire|absl|tyro)\b|input\("
)
_LOADS = re.compile(rb"(?<!load_state_dict\()\btorch\.load\((?![^\n]{0,200}map_location)")
"""Tensors go back to where they were saved from."""
_MAY_MOVE = (b"device", b".to(")
_OF_TRANSFORMERS = (b"Trainer", b"pipeline(")
"""What moves a model to the device that is there, without a word."""
_LIBRARIES = (
    "torch torchvision torchaudio torchtext torch_geometric torch_scatter torch_sparse torchmetrics"
    " torchsummary torchinfo torchviz timm einops transformers tokenizers datasets sentencepiece"
    " numpy pandas scipy sklearn matplotlib seaborn plotly PIL cv2 skimage imageio tqdm networkx"
    " nltk spacy jieba h5py yaml requests tensorboard tensorboardX wandb optuna joblib psutil"
    " gym gymnasium pygame IPython ipywidgets flask fastapi streamlit gradio uvicorn pydantic"
    " PyQt5 PyQt6 PySide2 PySide6 rdkit librosa soundfile pydub statsmodels imblearn ogb"
    " albumentations nibabel pydicom SimpleITK sympy numba tabulate termcolor colorama loguru rich"
    " dotenv openpyxl xgboost lightgbm yfinance chess unidecode bs4 selenium pytest"
)
_HARMLESS = frozenset(_LIBRARIES.split())
"""Libraries that move nothing to a device unless they are told to."""
_IN_NOTEBOOK = re.compile(rb"[\"n][ \t]*(?:from|import)[ \t]+([\w., \t]+)")


class _Traits(Flag):
    """What a module says of devices.

    Attributes:
        MOVES: It may move something to one.
        OF_OBJECT: It asks something for its device.
        SETTINGS: It reads what users say.
    """

    MOVES = auto()
    OF_OBJECT = auto()
    SETTINGS = auto()


_PLAIN = _Traits(0)
_SAID_BY_USERS = _Traits.OF_OBJECT | _Traits.SETTINGS


def modules_on_host(
    modules: Modules,
    files: Sequence[Path],
    folders: Iterable[Path],
    contents: Contents,
    memo: FactMemo,
) -> frozenset[str]:
    """The paths of scripts that name no device, and of modules that only these import.

    A device may be named in any module that a script imports, also in another of that name. Only
    whole projects are looked at that nobody can install: others may call what they define. What a
    module is for that is no script and that nothing imports is not known.
    """
    named = list(folders)
    if not runs_alone(named):
        return frozenset()
    scripts = [
        file
        for file, content in modules.items()
        if _TORCH in content.data and _CUDA not in content.data and runs_something(content, memo)
    ]
    if not scripts or imports_made_up_names(modules):
        return frozenset()
    graph = _Imports(modules, named, memo)
    staying: set[Path] = {file for file in scripts if graph.stays(file)}
    if not staying:
        return frozenset()
    candidates = all_reached(staying, graph.imported_by)
    books = (contents.of(file) for file in files if file.suffix == ".ipynb")
    others = {
        file
        for file in modules
        if file not in candidates
        and not (any(is_test(file, root) for root in named) and graph.stays(file))
    }
    others.update(file for book in books for file in graph.imported_in_notebook(book))
    elsewhere = all_reached(others, graph.imported_by)
    return frozenset(map(str, candidates - elsewhere))


class _Imports:
    """Which modules of a project import which, by the names of their files alone."""

    def __init__(self, modules: Modules, roots: Iterable[Path], memo: FactMemo) -> None:
        self._modules = modules
        self._memo = memo
        self._by_name: defaultdict[str, list[Path]] = defaultdict(list)
        self._folders: set[str] = set()
        for file in modules:
            self._by_name[file.parent.name if file.stem == PACKAGE else file.stem].append(file)
            self._folders.add(file.parent.name)
        self._folders -= {root.resolve().name for root in roots}
        self._known: dict[Path, frozenset[Path]] = {}

    def stays(self, script: Path) -> bool:
        """Whether nothing that a script imports moves anything to a device."""
        said = _PLAIN
        for file in all_reached([script], self.imported_by):
            said |= self._traits(file)
            if _Traits.MOVES in said or _SAID_BY_USERS in said:
                return False
        return True

    def imported_by(self, file: Path) -> frozenset[Path]:
        """The modules that a module may import."""
        if file not in self._known:
            names = imported_names(self._modules[file], self._memo)
            self._known[file] = frozenset(self._named(names)) - {file}
        return self._known[file]

    def imported_in_notebook(self, content: Content) -> Iterator[Path]:
        """The modules that a notebook may import."""
        listed = b" ".join(_IN_NOTEBOOK.findall(content.data)).decode("ascii", "ignore")
        yield from self._named(re.findall(r"\w+", listed))

    def _named(self, names: Iterable[str]) -> Iterator[Path]:
        for name in names:
            for part in name.split("."):
                yield from self._by_name.get(part, ())

    def _traits(self, file: Path) -> _Traits:
        content = self._modules[file]
        plain = self._memo.recall(
            "says of devices", (content.digest,), lambda: _traits_of(content.data).value, _read
        )
        roots = {name.partition(".")[0] for name in imported_names(content, self._memo)}
        unknown = roots - _HARMLESS - sys.stdlib_module_names - self._folders - self._by_name.keys()
        return plain | _Traits.MOVES if unknown - {""} else plain


def _read(plain: object) -> _Traits:
    if not isinstance(plain, int):
        raise TypeError("no traits")
    return _Traits(plain)


def _traits_of(data: bytes) -> _Traits:
    found = _Traits.SETTINGS if _SETTINGS.search(data) is not None else _PLAIN
    if _NAMES_ONE.search(data) is not None or _LOADS.search(data) is not None:
        return found | _Traits.MOVES
    if b"transformers" in data and any(word in data for word in _OF_TRANSFORMERS):
        return found | _Traits.MOVES
    rest = _OF_HOST.sub(b"", data)
    if _OF_OBJECT.search(data) is not None:
        found |= _Traits.OF_OBJECT
        rest = _OF_OBJECT.sub(b"", rest)
    return found | _Traits.MOVES if any(word in rest for word in _MAY_MOVE) else found

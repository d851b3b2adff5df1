"""Words anywhere in a module that decide what is reported elsewhere in it.

Each segment of a module is searched by itself and what is found counts for all of them: a check
that read only its own segment would answer otherwise in an editor, where segments are
small.
"""

from collections.abc import Iterable

from npulens.text.late_patterns import late

_IMPORTS_COMPILER = late(r"(?m)^[ \t]*(?:import|from)[ \t]+(?:cupy|pycuda)\b")
_DECISIVE_WORDS = (
    ("epochs", "for ep", late(r"for (?:epoch|ep )")),
    ("elastic launcher", "TORCHELASTIC_", None),
    ("ray", " ray", late(r" ray\b")),
    ("setup", "setuptools", None),
    ("megatron", "egatron", None),
    ("apex", "apex.", late(r"(?<!import )(?<!from )\bapex\.[a-z]")),
    ("apex amp", "amp.", late(r"(?m)^[^#\n]*(?<![\w.])amp\.[a-z]")),
    ("seeds", "torch.manual_seed(", None),
    ("capability", "get_device_capability", None),
    ("torch_npu", "torch_npu", None),
    ("torch.npu", "torch.npu", None),
    ("msprobe", "msprobe", None),
    ("cuda compiler", "cupy", _IMPORTS_COMPILER),
    ("cuda compiler", "pycuda", _IMPORTS_COMPILER),
    ("inline build", "cpp_extension", None),
    ("npu operators", "torch_npu.npu_", None),
    ("stops", ".stop()", None),
    ("profiles", "profile", late(r"\bprofiler\.profile\(|torch_npu\.profiler import")),
    (
        "cudnn tf32 off",
        "cudnn.allow_tf32",
        late(r"cudnn\.allow_tf32[ \t]*=(?![ \t]*True\b)"),
    ),
)
"""Names, each with a word that a text must have, and the pattern that it must have then."""
NPU_SOFTWARE = frozenset({"torch_npu", "torch.npu", "msprobe"})
"""Words of which a module that uses the software of the NPU has one."""
_READ = late(
    r"(?:environ(?:\.get|\.pop)?|getenv)[ \t]*[\[(][ \t]*[\"']([A-Z]\w+)[\"'](?!\][ \t]*=[^=])"
    r"|[\"']([A-Z]\w+)[\"'][ \t]+(?:not[ \t]+)?in\b|\$\{?([A-Z]\w+)"
)
_CHECKED_FOR_NONE = late(
    r"(?<![\w.])([A-Za-z_][\w.]*)\s+is\s+(?:not\s+)?None\b"
    r"|\b(?:if|and|not)\s+([A-Za-z_][\w.]*)(?=\s*:|\s+and\b|\s+or\b)"
)


def decisive_words_in(text: str) -> frozenset[str]:
    """Which of the things that matter for a whole module occur in a text.

    Returns:
        Some of `epochs` (a loop over them), `elastic launcher` (a variable of torchrun),
        `ray` (is imported), `apex`, `apex amp` (are used, beside imports), `setup` (of a package),
        `megatron` (the library), `seeds` (of all devices are set), `capability` (of a card is
        read), `torch_npu`, `torch.npu`, `msprobe` (are named), `cuda compiler` (CuPy or PyCUDA is
        imported), `inline build` (extensions are built when the program runs), `npu operators` (are
        called), `stops` (something), `profiles` (with a profiler) and `cudnn tf32 off` (TF32 of
        convolutions is set to anything but `True`).
    """
    return frozenset(
        name
        for name, word, pattern in _DECISIVE_WORDS
        if word in text and (pattern is None or pattern.search(text) is not None)
    )


def variables_read_in(text: str) -> frozenset[str]:
    """The environment variables that a text reads, also in a command inside of it."""
    if "environ" not in text and "getenv" not in text and "$" not in text:
        return frozenset()
    return frozenset(name for names in _READ.findall(text) for name in names if name)


def checked_for_none(texts: Iterable[str]) -> frozenset[str]:
    """The names, dotted ones too, that some texts compare with `None` or test by themselves."""
    found = (match for text in texts for match in _CHECKED_FOR_NONE.findall(text))
    return frozenset(compared or tested for compared, tested in found)

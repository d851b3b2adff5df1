"""What checks look up in one segment: its words, its imports, and functions."""

import ast
import re
from collections import Counter
from functools import cached_property

from npulens.checks.function_names import NO_NAMES, FunctionNames, names_in
from npulens.syntax.bindings import Function
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.scopes import ModuleScope, Scope, definitions_around, function_of
from npulens.syntax.values import Imported
from npulens.verdicts.npu_words import SegmentText

_EXEMPT = re.compile(
    r"(?<!to)(?<!from)(?<!offload)_cpu\Z|\Acpu_(?!offload)"
    r"|Dataset\Z|Collat(?:e|or)\Z|\Acollate|\A__getitem__\Z|(?i:cudnn|nvshmem)"
)
"""Functions for the host, those that load data, and those about a library for CUDA."""
_WALKS_LAYERS = re.compile(r"getattr\(self|\b(?:named_)?(?:children|modules)\(|_modules\b")
_OTHER_BACKEND = re.compile(r"\btorch\.(?:neuron|mlu|musa|hpu|mtia)\.|\btorch_xla\b")


class SegmentLookups:
    """Answers about one segment that several checks need; each is looked up once."""

    def __init__(self, code: SegmentText, identifiers: frozenset[str], module: ModuleScope) -> None:
        self.identifiers = identifiers
        self._code = code
        self._module = module
        self._contained: dict[str, bool] = {}
        self._contained_within: dict[tuple[str, ast.AST], bool] = {}
        self._layer_words: dict[ast.ClassDef, Counter[str]] = {}
        self._exempt: dict[ast.AST, bool] = {}
        self._imported_methods: frozenset[str] | None = None

    def contains(self, word: str) -> bool:
        """Whether a word is in the segment."""
        if word not in self._contained:
            self._contained[word] = word in self._code.text
        return self._contained[word]

    def contains_within(self, word: str, function: ast.AST) -> bool:
        """Whether a word is in a function."""
        key = word, function
        if key not in self._contained_within:
            self._contained_within[key] = word in self._code.source(function)
        return self._contained_within[key]

    @cached_property
    def imports(self) -> frozenset[str]:
        """The qualified names that the module imports."""
        found = (bindings for each in self._module.module.names.values() for _, bindings in each)
        values = (binding.value for bindings in found for binding in bindings)
        return frozenset(value.qualified for value in values if isinstance(value, Imported))

    @cached_property
    def import_roots(self) -> frozenset[str]:
        """The packages that these are from."""
        return frozenset(name.partition(".")[0] for name in self.imports)

    def imported_methods(self, elsewhere: OtherModules[frozenset[str]]) -> frozenset[str]:
        """The methods of classes of the project that the module imports, or whose modules."""
        if elsewhere.is_empty:
            return frozenset()
        if self._imported_methods is None:
            names = {f"{name}.{each}" for name in self.imports for each in elsewhere.names_in(name)}
            found = (elsewhere.find(name) or () for name in self.imports | names)
            self._imported_methods = frozenset().union(*found)
        return self._imported_methods

    def names_of(self, scope: Scope) -> FunctionNames:
        """What a function does with its names; nothing where the scope is of no function."""
        function = function_of(scope)
        return NO_NAMES if function is None else names_in(function)

    def layer_words(self, owner: ast.ClassDef) -> Counter[str]:
        """How often each word occurs in a class that calls its layers by name; else none does."""
        if owner not in self._layer_words:
            text = self._code.source(owner)
            is_whole = "def forward(" in text and not _WALKS_LAYERS.search(text)
            self._layer_words[owner] = Counter(re.findall(r"\w+", text) if is_whole else ())
        return self._layer_words[owner]

    def is_for_others(self, scope: Scope) -> bool:
        """Whether a function, or one around it, is for the host or another accelerator.

        It says so by its name, as `_init_weight_cpu` and `TextDataset.__getitem__`, or by what it
        uses.
        """
        return any(map(self._is_exempt, definitions_around(scope)))

    def _is_exempt(self, node: ast.AST) -> bool:
        if node not in self._exempt:
            text = self._code.source(node) if isinstance(node, Function) else "cuda"
            uses_other = "cuda" not in text and _OTHER_BACKEND.search(text) is not None
            named = _EXEMPT.search(getattr(node, "name", "")) is not None
            self._exempt[node] = named or uses_other
        return self._exempt[node]

"""List functions that may hold the computation of a fused NPU operator, by a simple search.

    python scripts/fused_candidates.py FOLDER... > candidates.tsv

The search is meant to measure the recognition of fused operators, so it shares nothing with it: it
looks at names and at plain shapes of the syntax tree, and is generous. What it lists is not a
finding; somebody has to read it. Prints path (below the folder), line, function, operator and key,
separated by tabs. Copies of a function have the same key, whatever its name, its class and its
local variables are called.

Of transformers, whose folders hold much else, only `modeling_*.py` is searched. Files that do not
import torch are left out.
"""

import argparse
import ast
import copy
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

IMPORTS_TORCH = re.compile(r"(?m)^\s*(import|from) torch\b")
GATED_NAME = re.compile(
    r"(?:Ge|Swi|Re|^|_|quick|\.)(?i:glu)(_|$|\.|[A-Z])|[GR]eGLU|SwiGLU|(?:sw|[gr]e)iglu|geglu"
)
RMS_CALL = re.compile(
    r"(^|\.)(F|functional|torch)\.rms_norm$|nn\.RMSNorm$|pytorch(\.ops)?\.RMSNorm$|rms_norm_fn"
)
ACTIVATION_CALL = re.compile(
    r"(?i)(^|[._\[])((quick_)?gelu\w*|silu\w*|swish\w*|relu\w*|sigmoid|act|act\d|actv?_?fn\w*"
    r"|\w*activation\w*|nonlinearity|act_func|\w+_act|act_\w+|\w*gate_fn|\w*glu_\w+|ACT2FN|NewGELU\w*)($|[._\[])"
)
ACTIVATION_VALUE = re.compile(
    r"(?i)ACT2FN|ACT2CLS|silu|swish|gelu|relu|sigmoid|get_activation|get_act|activation|act_layer"
)
FLASH_CALL = re.compile(
    r"^_?flash_attn\w*func\w*$|^flash_attn_(with_kvcache|gpu|varlen\w*)$|^memory_efficient_attention\w*$"
    r"|^_flash_attention_forward$|^flash_attn_unpadded\w*$|^sageattn\w*$|^xformers_attention$"
)
ROTARY_NAME = re.compile(
    r"rotate_half|rotate_every_two|rotate_(queries|pairwise)|apply_rot\w*|apply_rope\w*"
)
PRODUCTS = {"matmul", "bmm", "einsum", "baddbmm", "mm"}


@dataclass(frozen=True)
class Function:
    """A function of a file, with the class that holds it, if any."""

    node: FunctionNode
    name: str  # dotted, as in __qualname__ but without <locals>
    owner: ast.ClassDef | None


@dataclass(frozen=True)
class Candidate:
    """A function in which an operator is suspected."""

    function: Function
    operator: str
    key: str


def functions(
    body: list[ast.stmt], prefix: str = "", owner: ast.ClassDef | None = None
) -> Iterator[Function]:
    """All functions below these statements, nested ones too."""
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield Function(statement, prefix + statement.name, owner)
            yield from functions(statement.body, f"{prefix}{statement.name}.", owner)
        elif isinstance(statement, ast.ClassDef):
            yield from functions(statement.body, f"{prefix}{statement.name}.", statement)
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from functions(getattr(statement, field, []), prefix, owner)
            for handler in getattr(statement, "handlers", []):
                yield from functions(handler.body, prefix, owner)


def own_nodes(function: FunctionNode) -> list[ast.AST]:
    """The nodes of the function's statements without those of functions and classes inside."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        found.append(node)
        waiting.extend(list(ast.iter_child_nodes(node))[::-1])
    return found


def called(node: ast.AST) -> str:
    """The last name of what a call calls, or an empty string."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def has_rms_norm(function: Function, nodes: list[ast.AST]) -> bool:
    """A norm by the class's name, by the library's call, or by the root of a mean of squares."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(RMS_CALL.search(ast.unparse(call.func)) for call in calls):
        return True
    name = function.owner.name if function.owner else function.name
    computes = function.node.name in {"forward", "_norm", "__call__", "__new__"}
    if computes and re.search(r"(?i)rms_?norm|T5LayerNorm", name):
        return True
    if re.search(r"(?i)rms_?norm|rms_forward", function.node.name):
        return True
    names = {called(call) for call in calls}
    text = ast.unparse(function.node)
    root = names & {"rsqrt", "sqrt"} or re.search(r"\*\* \(?-?\(?(0\.5|1 ?/ ?2)", text)
    square = names & {"pow", "square"} or re.search(r"\*\* 2(?!\d|\.)", text)
    return bool(root and square and "mean" in names)


def activated_names(nodes: list[ast.AST]) -> set[str]:
    """Names that are bound to the result of something that looks like an activation."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and is_activated(node.value, names):
            for target in node.targets:
                names |= {leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
    return names


def is_activated(value: ast.AST, names: set[str]) -> bool:
    """Does this value hold an activation's call, or a name bound to one?"""
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and ACTIVATION_CALL.search(ast.unparse(node.func)):
            return True
    return isinstance(value, ast.Name) and value.id in names


def gated(nodes: list[ast.AST]) -> str:
    """The expressions in which an activation is a direct factor of a product, as text."""
    names = activated_names(nodes)
    found = []
    for node in nodes:
        match node:
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                factors: list[ast.AST] = [left, right]
            case ast.AugAssign(op=ast.Mult(), target=left, value=right):
                factors = [left, right]
            case ast.Call(
                func=ast.Attribute(attr="mul" | "mul_" | "multiply", value=left), args=args
            ):
                factors = [left, *args]
            case _:
                continue
        if any(is_activated(factor, names) for factor in factors):
            found.append(ast.unparse(node))
    return " ".join(found)


def is_product(node: ast.AST) -> bool:
    """Is this a product?"""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def gate_operator(function: Function, nodes: list[ast.AST]) -> str | None:
    """The kind of gated unit that names of activations suggest."""
    text = gated(nodes)
    name = f"{function.owner.name if function.owner else ''}.{function.node.name}"
    named = GATED_NAME.search(name) is not None and function.node.name != "__init__"
    if not text and not (named and any(map(is_product, nodes))):
        return None
    wider = text + " " + ast.unparse(function.node) + " ".join(activations_of(function))
    return "geglu" if "gelu" in wider.lower() and "silu" not in wider.lower() else "swiglu"


def has_rotary(function: Function, nodes: list[ast.AST]) -> bool:
    """Sums of products with a cosine and a sine, complex products, or the usual helpers."""
    if ROTARY_NAME.search(function.node.name):
        return True
    if any(
        called(node) in {"view_as_complex", "rotate_half", "rotate_every_two"} for node in nodes
    ):
        return True
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            sides = ast.unparse(node.left).lower(), ast.unparse(node.right).lower()
            if all("*" in side for side in sides):
                both = " ".join(sides)
                if "cos" in both and "sin" in both:
                    return True
    text = ast.unparse(function.node).lower()
    return "addcmul" in text and "sin" in text and "cos" in text


def has_attention(function: Function, nodes: list[ast.AST]) -> bool:
    """A softmax, and before or after it a product of matrices."""
    softmax = any(isinstance(node, ast.Call) and is_softmax(node) for node in nodes)
    return softmax and any(map(is_matrix_product, nodes))


def is_softmax(node: ast.Call) -> bool:
    """Is this a softmax, as function, method or module, or a helper that must contain one?"""
    name = ast.unparse(node.func).lower()
    return (
        bool(re.search(r"softmax|attention_(scores|probs)|view_attention", name))
        and "log_softmax" not in name
    )


def is_matrix_product(node: ast.AST) -> bool:
    """Is this a product of matrices, as call or as operator?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return True
    return isinstance(node, ast.Call) and (called(node) in PRODUCTS or "matmul" in called(node))


def operators(function: Function) -> Iterator[str]:
    """The operators that may be in this function."""
    nodes = own_nodes(function.node)
    calls = {called(node) for node in nodes}
    if has_rms_norm(function, nodes):
        yield "rms_norm"
    gate = gate_operator(function, nodes)
    if gate:
        yield gate
    if has_rotary(function, nodes):
        yield "rotary"
    if has_attention(function, nodes):
        yield "attention"
    if any(FLASH_CALL.match(name) for name in calls):
        yield "flash_attention"
    if "scaled_dot_product_attention" in calls:
        yield "sdpa"


def activations_of(function: Function) -> list[str]:
    """What the class's `__init__` assigns to attributes that hold an activation."""
    if function.owner is None:
        return []
    used = {node.attr for node in ast.walk(function.node) if isinstance(node, ast.Attribute)}
    return [
        ast.unparse(node.value)
        for statement in function.owner.body
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__"
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and ACTIVATION_VALUE.search(ast.unparse(node))
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr in used
    ]


class _Plain(ast.NodeTransformer):
    """Takes away what does not change a computation: annotations and names of variables."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.names.get(node.arg, node.arg))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.visit(ast.Assign([node.target], node.value, lineno=0))


def key_of(function: Function) -> str:
    """A short hash of the function that its copies share."""
    node = copy.deepcopy(function.node)
    node.name, node.decorator_list, node.returns = "f", [], None
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    names: dict[str, str] = {function.owner.name: "C"} if function.owner else {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            names.setdefault(inner.arg, f"v{len(names)}")
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.setdefault(inner.id, f"v{len(names)}")
    text = ast.dump(_Plain(names).visit(node)) + "\n".join(activations_of(function))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def candidates(text: str) -> Iterator[Candidate]:
    """The candidates of one file."""
    for function in functions(ast.parse(text).body):
        found = list(operators(function))
        if found:
            key = key_of(function)
            yield from (Candidate(function, operator, key) for operator in found)


def files(folder: Path) -> Iterator[Path]:
    """The files to search: of transformers only the models, of others all."""
    for path in sorted(folder.rglob("*.py")):
        package = path.relative_to(folder).parts[0]
        if package != "transformers" or path.name.startswith("modeling_"):
            yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    for folder in options.folders:
        for path in files(folder):
            text = path.read_text(encoding="utf-8")
            if not IMPORTS_TORCH.search(text):
                continue
            for found in candidates(text):
                row = (found.function.node.lineno, found.function.name, found.operator, found.key)
                print(path.relative_to(folder), *row, sep="\t")


if __name__ == "__main__":
    main()

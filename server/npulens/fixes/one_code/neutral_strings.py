"""Devices that strings and methods name, backends of process groups, Lightning's accelerators."""

import ast
import re

from npulens.catalog.model import Edit
from npulens.fixes.one_code.comparisons import Comparisons
from npulens.fixes.one_code.devices import parameters_with_values
from npulens.fixes.one_code.editing import text_of
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import FunctionScope, Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_AVAILABLE = "torch.cuda.is_available"
_GROUPS = "torch.distributed.init_process_group"
_BACKENDS = re.compile(r"(?:cpu:gloo,cuda:nccl|cuda:nccl,cpu:gloo)")
_TAKES_DEVICES = frozenset({"device", "map_location"})


class Strings(Comparisons):
    """Writes devices as the one of the script."""

    def _made_device(self, node: ast.Call, scope: Scope) -> None:
        """`torch.device("cuda" if torch.cuda.is_available() else "cpu")`."""
        given = node.args[0]
        if self._is_found(given) and text_of(given) == "cuda":
            device = self._device(node, given, scope)
            if device is not None:
                self._replace(node, device, given)
            return
        if not isinstance(given, ast.IfExp) or text_of(given.body) != "cuda":
            return
        if not self._is_found(given.body) or text_of(given.orelse) != "cpu":
            return
        question = _called(given.test)
        if self._is_meant(question) and _AVAILABLE in qualified_names(question, scope):
            self._replace(node, self._in_brackets(node, self._devices.chosen), given.body)
            self.places.add(self._span(question))
            return
        start, body = self._span(node).start, self._span(given.body)
        other = self._span(given.orelse).start
        text = f"{self._torch}.accelerator.current_accelerator()"
        self.edits.append(Edit(Span(start, body.end), text))
        self.edits.append(Edit(Span(other, other), f"{self._torch}.device("))
        self.places.add(body)
        self._done.update((given.body, node.func))

    def _moved(self, node: ast.Call, method: ast.Attribute, scope: Scope) -> None:
        """`x.cuda()`, `x.cuda(rank, non_blocking=True)`."""
        whole = self._span(method)
        place = Span(whole.end - len("cuda"), whole.end)
        if place not in self._found or any(k.arg is None for k in node.keywords):
            return
        around = self._owners.get(node)
        if isinstance(around, ast.Lambda) and len(around.args.args) == 2:
            self._placed(node, around, scope)
            return
        given = self._argument(node, 0, "device")
        if given is None:
            device = self._devices.at(node, scope)
            if device is None:
                return
            self._first(node, device.text)
        elif not isinstance(given, ast.Constant):
            device = self._devices.at(node, scope)
            if device is None:
                return
            if not self._is_number(given, scope):
                source = self._script.source(given)
                text = f"{device.text} if {source} is None else {source}"
                self.edits.append(Edit(self._span(given), text))
        self.edits.append(Edit(place, "to"))
        self.places.add(place)

    def _placed(self, node: ast.Call, function: ast.Lambda, scope: Scope) -> None:
        """`map_location=lambda storage, location: storage.cuda()`: a storage has no `to`."""
        keyword = self._owners.get(function)
        if not isinstance(keyword, ast.keyword) or keyword.arg != "map_location" or node.args:
            return
        device = self._devices.at(function, scope)
        if device is not None and isinstance(node.func, ast.Attribute):
            end = self._span(node.func).end
            self._replace(function, device.text, node)
            self.places.add(Span(end - len("cuda"), end))

    def _is_number(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a device is given in any case: a number, a device that is made here."""
        if isinstance(node, (ast.Call, ast.BinOp)):
            return True
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Constant)
        if not isinstance(node, ast.Name):
            return False
        if isinstance(scope, FunctionScope) and node.id in parameters_with_values(scope.node):
            return True
        values = self._values.get(node.id, ())
        return bool(values) and all(
            isinstance(arm, (ast.Call, ast.BinOp))
            or (isinstance(arm, ast.Constant) and arm.value is not None)
            for value in values
            for arm in ((value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,))
        )

    def _backend(self, node: ast.Constant, scope: Scope) -> None:
        """`"nccl"`: the backend that PyTorch has for the device."""
        device = self._devices.at(node, scope)
        if device is None or isinstance(self._owners.get(node), ast.Compare):
            return
        owner = f"{self._torch}.distributed"
        call = self._around_keyword(node)
        names = [] if call is None else qualified_names(call.func, scope)
        if call is not None and names and names[0].rpartition(".")[0] == "torch.distributed":
            owner = self._script.source(call.func).rpartition(".")[0] or owner
        self._replace(node, f"{owner}.get_default_backend_for_device({device.text})", node)

    def _backends(self, node: ast.Constant, scope: Scope) -> None:
        """`"cpu:gloo,cuda:nccl"`: PyTorch takes that of each device where none is given."""
        call = self._around_keyword(node)
        if call is not None and qualified_names(call.func, scope)[:1] == [_GROUPS]:
            self._replace(node, "None", node)

    def _is_accelerator(self, node: ast.Constant, scope: Scope) -> bool:
        """Whether it is `Trainer(accelerator="gpu")` of Lightning."""
        keyword, call = self._owners.get(node), self._around_keyword(node)
        if not isinstance(keyword, ast.keyword) or keyword.arg != "accelerator" or call is None:
            return False
        return any("lightning" in name for name in qualified_names(call.func, scope))

    def _accelerator(self, node: ast.Constant) -> None:
        self._replace(node, '"auto"', node)
        self.is_sure = False  # it runs where it refused to

    def _cards(self, keyword: ast.keyword) -> None:
        """`Trainer(gpus=2)`, which newer releases do not take any more."""
        value, span = keyword.value, self._script.span(keyword)
        if keyword.arg == "gpus" and span in self._found and isinstance(value, ast.Constant):
            self.edits.append(Edit(Span(span.start, span.start + 4), 'accelerator="auto", devices'))
            self.places.add(span)
            self.is_sure = False

    def _around_keyword(self, node: ast.expr) -> ast.Call | None:
        """The call that gets a value, by position or by its name."""
        owner = self._owners.get(node)
        owner = self._owners.get(owner) if isinstance(owner, ast.keyword) else owner
        return owner if isinstance(owner, ast.Call) else None

    def _string(self, node: ast.Constant | ast.JoinedStr, scope: Scope) -> None:
        """`"cuda"`, `"cuda:0"`, `f"cuda:{rank}"` where a device is meant."""
        if not self._is_found(node) or isinstance(self._owners.get(node), ast.MatchValue):
            return
        if self._is_in_table(node) or node in self._done:
            return
        if isinstance(node, ast.JoinedStr):
            self._formatted(node, scope)
            return
        text = text_of(node)
        if text == "nccl":
            self._backend(node, scope)
        elif _BACKENDS.fullmatch(text):
            self._backends(node, scope)
        elif text in ("gpu", "cuda") and self._is_accelerator(node, scope):
            self._accelerator(node)
        elif text == "cuda" and self._takes_device(node, scope):
            device = self._device(node, node, scope)
            if device is not None:
                self._replace(node, device, node)
        elif text in ("cuda:{}", "cuda:%d", "cuda:%s") and self._number(node) is not None:
            self._numbered(node, scope)
        elif text == "cuda" or text.startswith("cuda:"):
            kind = self._kind(node, scope)
            if kind is not None:
                rest = text.removeprefix("cuda").replace("{", "{{").replace("}", "}}")
                self._replace(node, f'f"{{{kind}}}{rest}"' if rest else kind, node)

    def _numbered(self, node: ast.Constant, scope: Scope) -> None:
        """`"cuda:{}".format(rank)`, `"cuda:%d" % rank`."""
        kind, number = self._kind(node, scope), self._number(node)
        if kind is None or number is None:
            return
        source = self._script.source(number)
        if not any(each in kind + source for each in "\"'{}\n"):
            outer = self._owners[node]
            outer = self._owners[outer] if isinstance(outer, ast.Attribute) else outer
            assert isinstance(outer, ast.expr)
            self._replace(outer, f'f"{{{kind}}}:{{{source}}}"', node)

    def _number(self, node: ast.Constant) -> ast.expr | None:
        """What is put into a string, if that is one thing."""
        owner = self._owners[node]
        if isinstance(owner, ast.BinOp) and isinstance(owner.op, ast.Mod) and owner.left is node:
            right = owner.right
            only = right.elts[0] if isinstance(right, ast.Tuple) and len(right.elts) == 1 else right
            return None if isinstance(only, ast.Tuple) else only
        call = self._owners[owner]
        if not isinstance(owner, ast.Attribute) or owner.attr != "format":
            return None
        is_one = isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords
        return call.args[0] if is_one and isinstance(call, ast.Call) else None

    def _is_in_table(self, node: ast.expr) -> bool:
        """Whether a string is a key, or says what the devices of a file become."""
        table = self._owners.get(node)
        if not isinstance(table, ast.Dict):
            return False
        keyword = self._owners.get(table)
        is_of_file = isinstance(keyword, ast.keyword) and keyword.arg == "map_location"
        return is_of_file or node in table.keys

    def _formatted(self, node: ast.JoinedStr, scope: Scope) -> None:
        source = self._script.source(node)
        at = source.find("cuda:")
        kind = self._kind(node, scope)
        if at < 0 or kind is None or any(quote in kind for quote in "\"'"):
            return
        start = self._span(node).start + at
        self.edits.append(Edit(Span(start, start + len("cuda")), f"{{{kind}}}"))
        self.places.add(self._span(node))
        self._done.update(nodes_below(node))

    def _takes_device(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a string is where a device would do as well."""
        owner = self._owners.get(node)
        if isinstance(owner, ast.Call):
            is_move = isinstance(owner.func, ast.Attribute) and owner.func.attr == "to"
            return is_move and node in owner.args
        if not isinstance(owner, ast.keyword) or owner.arg not in _TAKES_DEVICES:
            return False
        call = self._owners.get(owner)
        names = qualified_names(call.func, scope) if isinstance(call, ast.Call) else []
        return bool(names) and names[0].startswith("torch.")


def _called(node: ast.expr) -> ast.expr:
    """What an expression calls; itself if it is no call."""
    return node.func if isinstance(node, ast.Call) else node

"""Mixed precision: autocast, gradient scalers and decorators for the device at hand."""

import ast

from npulens.catalog.model import Edit
from npulens.fixes.one_code.devices import Device
from npulens.fixes.one_code.editing import Editing, text_of
from npulens.fixes.one_code.vocabulary import (
    AUTOCAST_PARAMETERS,
    AUTOCAST_TYPES,
    MODULE_OF_AMP,
    NEUTRAL_AUTOCASTS,
    NEUTRAL_SCALERS,
    SCALED_SINCE,
)
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span


class Precision(Editing):
    """Writes mixed precision; it stays off where there is no device but the CPU."""

    def _autocast(self, node: ast.Call, name: str, scope: Scope) -> None:
        """`torch.cuda.amp.autocast(enabled=x)`, `torch.autocast("cuda")`: off without a device."""
        if any(isinstance(a, ast.Starred) for a in node.args):
            return
        if name not in NEUTRAL_AUTOCASTS and not self._is_meant(node.func):
            return
        is_neutral = name in NEUTRAL_AUTOCASTS
        kind = self._argument(node, 0, "device_type") if is_neutral else None
        if is_neutral and (kind is None or not self._is_found(kind)):
            return
        device = self._devices.at(node, scope)
        if device is None:
            return
        if is_neutral:
            assert kind is not None
            self._replace(kind, device.kind, kind)
        else:
            self._callee(node.func, "amp.autocast")
            self._named(node, AUTOCAST_PARAMETERS)
            self._first(node, f"device_type={device.kind}")
        position = 2 if is_neutral else 0
        self._enabled(node, self._argument(node, position, "enabled"), device)

    def _scaler(self, node: ast.Call, name: str, scope: Scope) -> None:
        """`torch.cuda.amp.GradScaler(enabled=x)`: off without a device."""
        if any(isinstance(a, ast.Starred) for a in node.args) or not self._is_meant(node.func):
            return
        is_neutral = name in NEUTRAL_SCALERS
        kind = self._argument(node, 0, "device") if is_neutral else None
        if is_neutral and kind is not None and text_of(kind).partition(":")[0] != "cuda":
            return
        device = self._devices.at(node, scope)
        if device is None:
            return
        if kind is not None:
            self._replace(kind, device.kind, kind)
            self.places.add(self._span(node.func))
        else:
            if not is_neutral:
                self._callee(node.func, "amp.GradScaler")
            self.places.add(self._span(node.func))
            self._first(node, device.kind)
        self.is_sure &= self._release >= SCALED_SINCE
        position = 5 if is_neutral and kind is not None else 4
        self._enabled(node, self._argument(node, position, "enabled"), device)

    def _decorator(self, node: ast.Call, name: str, scope: Scope) -> None:
        """`@torch.cuda.amp.custom_fwd(cast_inputs=...)`."""
        device = self._devices.at(node, scope)
        if device is not None:
            self._callee(node.func, f"amp.{name.rpartition('.')[2]}")
            self._first(node, f"device_type={device.kind}")

    def _autocast_type(self, node: ast.Call, name: str, scope: Scope) -> None:
        """`torch.get_autocast_gpu_dtype()`: that of the device at hand."""
        device = self._devices.at(node, scope) if self._is_meant(node.func) else None
        if device is not None:
            self._callee(node.func, AUTOCAST_TYPES[name])
            self._first(node, device.kind)

    def _enabled(self, node: ast.Call, given: ast.expr | None, device: Device) -> None:
        """Mixed precision that is off on the CPU, as that for CUDA is."""
        condition = f'{device.kind} != "cpu"'
        if given is None:
            end = self._span(node).end - 1
            has_more = bool(node.args or node.keywords) or self._inserts_into(node)
            comma = self._script.lines.text[:end].rstrip().endswith(",")
            lead = " " if comma else ", " if has_more else ""
            self.edits.append(Edit(Span(end, end), f"{lead}enabled={condition}"))
        elif isinstance(given, ast.Constant):
            if given.value:
                self.edits.append(Edit(self._span(given), condition))
        else:
            span = self._span(given)
            is_single = isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            before, behind = ("", "") if is_single else ("(", ")")
            self.edits.append(Edit(Span(span.start, span.start), before))
            self.edits.append(Edit(Span(span.end, span.end), f"{behind} and {condition}"))

    def _import(self, node: ast.ImportFrom) -> None:
        """`from torch.cuda.amp import autocast`: the same names are in `torch.amp`."""
        if node.module == MODULE_OF_AMP and not node.level:
            start = self._script.lines.text.find(MODULE_OF_AMP, self._span(node).start)
            self.edits.append(Edit(Span(start, start + len(MODULE_OF_AMP)), "torch.amp"))
            self.places.update(map(self._span, node.names))
            self.places.add(Span(start, start + len(MODULE_OF_AMP)))
        elif node.module == "torch.cuda" and not node.level:
            amp = [alias for alias in node.names if alias.name == "amp"]
            if len(amp) == len(node.names):
                start = self._script.lines.text.find("torch.cuda", self._span(node).start)
                self.edits.append(Edit(Span(start, start + len("torch.cuda")), "torch"))
                self.places.update(map(self._span, node.names))

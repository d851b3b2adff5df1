"""Which check looks at which kinds of node."""

import ast
from functools import lru_cache

from npulens.checks import references
from npulens.checks.python.apis import layout, mapped_calls, native, npu_names, switches
from npulens.checks.python.devices import (
    build_versions,
    capabilities,
    checkpoints,
    default_devices,
    device_strings,
    error_texts,
    import_statements,
    methods,
    project_words,
)
from npulens.checks.python.launching import (
    batch_scripts,
    environment,
    performance,
    requirements,
    setting_values,
    slurm_requests,
    tool_use,
    toolkit_commands,
)
from npulens.checks.python.libraries import (
    attention_calls,
    attention_options,
    extensions,
    kernel_texts,
    library_calls,
    library_uses,
)
from npulens.checks.python.mixed_precision import (
    amp_calls,
    apex_amp,
    precision,
    scaler_order,
    sharded_scaler,
)
from npulens.checks.python.parallelism import backend_options, lightning, parallel, ray_resources
from npulens.checks.visitor import Check, Checks

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SEQUENCES = (ast.Tuple, ast.List, ast.Set)
_SETTINGS = (ast.Call, ast.Dict, ast.Assign, ast.AnnAssign, ast.arguments)

# In this order: what reports a place first may keep a later, more general check from it.
_TABLE: tuple[tuple[Check, tuple[type[ast.AST], ...]], ...] = (
    (library_uses.tried, (ast.Try,)),
    (library_uses.suppressed, (ast.With,)),
    (library_uses.tested, (ast.If, ast.IfExp, ast.BoolOp)),
    (library_uses.entered, (*_FUNCTIONS, ast.ClassDef)),
    (attention_calls.in_statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)),
    (attention_calls.called, (ast.Call,)),
    (attention_options.in_call, (ast.Call,)),
    (setting_values.given, _SETTINGS),
    (library_uses.referenced, (ast.Attribute,)),
    (library_uses.imported, (ast.Import, ast.ImportFrom)),
    (library_uses.loaded, (ast.Call,)),
    (default_devices.called, (ast.Call,)),
    (extensions.imported, (ast.Import, ast.ImportFrom)),
    (extensions.loaded, (ast.Call,)),
    (parallel.chosen_number, (ast.IfExp,)),
    (parallel.chosen_barrier, (ast.Assign,)),
    (parallel.conditional_barrier, (ast.If,)),
    (parallel.wrapper_refused, (ast.Assert, ast.If)),
    (parallel.setting_of_mmcv, (ast.Call, ast.Assign)),
    (switches.value_read, (ast.Call, ast.List, ast.Tuple, ast.FormattedValue)),
    (switches.value_read, (ast.If, ast.BoolOp, ast.UnaryOp)),
    (switches.switches_for_a_block, (ast.Call,)),
    (amp_calls.type_named, (*_FUNCTIONS, ast.AnnAssign)),
    (amp_calls.compared, (ast.Compare,)),
    (amp_calls.called, (ast.Call,)),
    (amp_calls.decorated, (ast.FunctionDef,)),
    (error_texts.looked_for, (ast.Compare,)),
    (sharded_scaler.called, (ast.Call,)),
    (apex_amp.initialized, (ast.Assign,)),
    (layout.queried_choice, (ast.Assign,)),
    (layout.memory_format, (ast.Call,)),
    (layout.known_formats, (ast.Compare, *_SEQUENCES, ast.Dict)),
    (switches.set_for_cuda, (ast.If,)),
    (switches.switch_set, (ast.Assign,)),
    (switches.product_precision, (ast.Expr,)),
    (precision.double, (ast.Call,)),
    (precision.deterministic, (ast.Call,)),
    (precision.training_loop, (ast.For, ast.While)),
    (scaler_order.entered, (*_FUNCTIONS, ast.For, ast.While)),
    (scaler_order.called, (ast.Call,)),
    (capabilities.taken_apart, (ast.Assign, ast.Compare, ast.Starred, ast.Subscript)),
    (build_versions.taken_apart, (ast.Attribute, ast.Call, ast.Compare)),
    (build_versions.otherwise, (ast.BoolOp,)),
    (build_versions.recorded, (ast.Dict, ast.Assign)),
    (references.attribute, (ast.Attribute,)),
    (references.assigned, (ast.Assign, ast.AnnAssign)),
    (references.patched, (ast.Assign,)),
    (references.default_tensor_type, (ast.Call,)),
    (references.literal_getattr, (ast.Call,)),
    (references.imported_name, (ast.Name,)),
    (library_uses.imported_name, (ast.Name,)),
    (import_statements.imported, (ast.Import, ast.ImportFrom)),
    (npu_names.member, (ast.Attribute,)),
    (npu_names.entered, (ast.With,)),
    (npu_names.imported, (ast.ImportFrom,)),
    (npu_names.called, (ast.Call,)),
    (npu_names.assigned, (ast.Assign,)),
    (methods.referenced, (ast.Attribute,)),
    (methods.called, (ast.Call,)),
    (methods.assigned, (ast.Assign,)),
    (environment.call, (ast.Call,)),
    (environment.assigned, (ast.Assign,)),
    (environment.dictionary, (ast.Dict,)),
    (tool_use.profiled, (ast.With,)),
    (tool_use.called, (ast.Call,)),
    (tool_use.made_in_loop, (ast.For, ast.While)),
    (tool_use.set_late, (ast.Assign,)),
    (backend_options.declared, (ast.Call,)),
    (batch_scripts.formatted, (ast.JoinedStr,)),
    (batch_scripts.constant, (ast.Constant,)),
    (slurm_requests.submitted, (ast.Call,)),
    (slurm_requests.given, _SETTINGS),
    (slurm_requests.further, _SETTINGS),
    (batch_scripts.listed, (ast.List, ast.Tuple)),
    (toolkit_commands.started, (ast.Call,)),
    (kernel_texts.constant, (ast.Constant,)),
    (checkpoints.loaded, (ast.Call,)),
    (checkpoints.taken_to_host, (ast.Call,)),
    (ray_resources.requested, (ast.Call,)),
    (requirements.called, (ast.Call,)),
    (requirements.assigned, (ast.Assign,)),
    (project_words.entry, (ast.Subscript,)),
    (project_words.looked_up, (ast.Assign, ast.AnnAssign, ast.Subscript)),
    (project_words.table, (ast.Dict,)),
    (project_words.call, (ast.Call,)),
    (project_words.path, (ast.BinOp,)),
    (project_words.text, (ast.JoinedStr,)),
    (project_words.comparison, (ast.Compare,)),
    (project_words.assignment, (ast.Assign, ast.AnnAssign)),
    (project_words.defaults, (ast.arguments,)),
    (project_words.entered, _FUNCTIONS),
    (device_strings.named_patch, (ast.Call,)),
    (device_strings.named_types, (ast.Compare,)),
    (device_strings.call, (ast.Call,)),
    (device_strings.comparison, (ast.Compare,)),
    (device_strings.assignment, (ast.Assign, ast.AnnAssign, ast.NamedExpr)),
    (device_strings.loop, (ast.For,)),
    (device_strings.conditional, (ast.IfExp,)),
    (device_strings.defaults, (ast.arguments,)),
    (device_strings.returned, (ast.Return,)),
    (device_strings.dictionary, (ast.Dict,)),
    (device_strings.case, (ast.Match,)),
    (device_strings.display, _SEQUENCES),
    (device_strings.collected, (ast.Call, ast.AugAssign)),
    (device_strings.collected_if_available, (ast.If,)),
    (environment.variable, (ast.Constant,)),
    (device_strings.constant, (ast.Constant,)),
    (project_words.question, (ast.Constant,)),
    (device_strings.formatted, (ast.JoinedStr,)),
    (device_strings.concatenated, (ast.BinOp,)),
    (lightning.called, (ast.Call,)),
    (mapped_calls.called, (ast.Call,)),
    (mapped_calls.chosen, (ast.Call, ast.Dict)),
    (extensions.built, (ast.Call,)),
    (extensions.called, (ast.Call,)),
    (library_calls.eight_bits, (ast.Call,)),
    (library_calls.four_bits, (ast.Call,)),
    (library_calls.nvidia_smi, (ast.Call,)),
    (library_calls.provider_list, (ast.List,)),
    (library_calls.command_list, (ast.List,)),
    (library_calls.provider, (ast.Constant,)),
    (library_calls.command_text, (ast.Constant,)),
    (native.attribute, (ast.Attribute,)),
    (native.imported, (ast.ImportFrom,)),
    (native.mentioned, (ast.Call, ast.Compare, ast.Assign, ast.AnnAssign, ast.Dict)),
    (native.mentioned, (ast.arg, ast.Subscript, *_FUNCTIONS, ast.ExceptHandler)),
    (native.literal_getattr, (ast.Call,)),
    (native.called, (ast.Call,)),
    (performance.call, (ast.Call,)),
    (performance.loop, (ast.For, ast.While)),
    (parallel.wrapper_test, (ast.Call, ast.Compare)),
    (parallel.device_ids, (ast.Call,)),
    (parallel.reduction, (ast.Call,)),
    (parallel.compared_backend, (ast.Compare,)),
    (parallel.wrappers_together, (*_SEQUENCES, ast.BinOp, ast.BoolOp)),
)
_ABOUT_STRINGS: frozenset[Check] = frozenset(
    check
    for check, _ in _TABLE
    if check.__module__ in (device_strings.__name__, project_words.__name__)
)
"""What looks for "cuda" and "nccl" in every call and assignment."""
_FOR_STARS: tuple[tuple[Check, tuple[type[ast.AST], ...]], ...] = (
    (references.bare_name, (ast.Name,)),
    (native.bare_name, (ast.Name,)),
)


@lru_cache(maxsize=4)
def checks(has_star_imports: bool, names_gpus: bool) -> Checks:
    """The checks by node type.

    Args:
        has_star_imports: Bare names matter only where a star import may have brought them.
        names_gpus: The module holds "cuda", "nccl" or "lightning" somewhere.
    """
    found: dict[type[ast.AST], list[Check]] = {}
    for check, types in (*_TABLE, *(_FOR_STARS if has_star_imports else ())):
        if names_gpus or check not in _ABOUT_STRINGS:
            for node_type in types:
                found.setdefault(node_type, []).append(check)
    return found

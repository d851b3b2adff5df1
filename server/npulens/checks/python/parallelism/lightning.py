"""What Lightning gets besides an accelerator: cards, a strategy, a precision."""

import ast

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.catalog.tables import Meaning, ParameterEntry
from npulens.checks.arguments import keyword_of, spread_keywords
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.purpose import ON_HOST
from npulens.checks.shared_rules import AUTO_ACCELERATOR, DATA_PARALLEL_RULE
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope

_REQUESTS = frozenset({"gpus", "strategy", "accelerator", "distributed_backend", "precision"})
_CLASSES = frozenset({"Trainer", "Fabric"})
_FROM_OPTIONS = "from_argparse_args"
"""What makes a Trainer from the options of a command line, until release 2."""
_CHOOSING = frozenset({"accelerator", "gpus", "tpu_cores", "ipus", "hpus", None})
"""Parameters that say which accelerator, release by release, and `**settings`, which may."""
_OF_RELEASE_1 = frozenset(
    {
        *("amp_backend", "amp_level", "auto_lr_find", "auto_scale_batch_size", "auto_select_gpus"),
        *("checkpoint_callback", "flush_logs_every_n_steps", "log_gpu_memory", "num_processes"),
        *("move_metrics_to_cpu", "multiple_trainloader_mode", "prepare_data_per_node"),
        *("process_position", "progress_bar_refresh_rate", "replace_sampler_ddp"),
        *("resume_from_checkpoint", "stochastic_weight_avg", "terminate_on_nan"),
        *("track_grad_norm", "truncated_bptt_steps", "weights_summary"),
    }
)
"""Parameters that release 2 refuses. Source: Lightning 2.0 CHANGELOG, what was removed."""
_DATA_PARALLEL = frozenset({"strategy", "accelerator", "distributed_backend"})
"""Parameters that have taken `"dp"`, release by release."""
_NO_GPUS: frozenset[object] = frozenset({None, 0, "0", ""})
_AUTOCAST: frozenset[object] = frozenset({"16-mixed", "bf16-mixed", "16", "bf16", 16})
_OTHER_DEVICES = frozenset({"auto", "cpu", "hpu", "ipu", "mps", "tpu"})
_OWN_PRECISION = ("deepspeed", "fsdp", "xla")
"""Beginnings of strategies that bring a precision plugin of their own."""


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`Trainer(gpus=2)`, `Trainer(strategy="dp")`, `Fabric(precision="16-mixed")`."""
    callee = _made(node.func)
    is_named = last_identifier(callee) in _CLASSES
    if not is_named and not any(keyword.arg in _REQUESTS for keyword in node.keywords):
        return
    entry = _accelerator(callee, scope, context)
    if entry is None:
        return
    given = [*node.keywords, *spread_keywords(node, scope)]
    gpus = next((keyword for keyword in given if keyword.arg == "gpus"), None)
    if gpus is not None and not _is_one_of(gpus.value, _NO_GPUS):
        span = context.span(gpus)
        context.report(entry.rule, span, context.source(gpus), [], note=entry.note)
    for keyword in given:
        if keyword.arg in _DATA_PARALLEL and _is_one_of(keyword.value, frozenset({"dp"})):
            _data_parallel(keyword.value, context)
    if not context.facts.shim.is_active and _is_for_device(node, gpus):
        _precision(node, context)
    if _chooses_itself(node, callee):
        _chosen(node, callee, scope, context)


def _made(callee: ast.expr) -> ast.expr:
    """The class of which an object is made: `Trainer` of `Trainer.from_argparse_args`."""
    if isinstance(callee, ast.Attribute) and callee.attr == _FROM_OPTIONS:
        return callee.value
    return callee


def _chooses_itself(node: ast.Call, callee: ast.expr) -> bool:
    """Whether nothing says which accelerator it is to be."""
    given = {keyword.arg for keyword in node.keywords}
    if not given.isdisjoint(_CHOOSING) or last_identifier(callee) not in _CLASSES:
        return False
    return callee is not node.func or not node.args


def _chosen(node: ast.Call, callee: ast.expr, scope: Scope, context: Context) -> None:
    """Since release 2 Lightning chooses an accelerator then.

    So did release 1 if the number of devices was given, and took the CPU otherwise, which is right.
    Where nothing tells the release, that is said.
    """
    note = None if callee is node.func else message("check.lightning-options")
    severity, settled = None, None
    given = {keyword.arg for keyword in node.keywords}
    if callee is node.func and not _is_of_release_2(node, scope) and "devices" not in given:
        note, severity = message("check.lightning-releases"), Severity.HINT
        settled = None if given.isdisjoint(_OF_RELEASE_1) else ON_HOST
    context.report(
        context.catalogue.required(AUTO_ACCELERATOR),
        context.span(node.func),
        context.source(node.func),
        [],
        note=note,
        severity=severity,
        settled=settled,
    )


def _is_of_release_2(node: ast.Call, scope: Scope) -> bool:
    """Whether a call can only be one of release 2: by the package, or by `precision="16-mixed"`."""
    precision = keyword_of(node, "precision")
    if precision is not None and "-" in _text(precision):
        return True
    names = qualified_names(node.func, scope)
    return any(not name.startswith("pytorch_lightning.") for name in names)


def _accelerator(callee: ast.expr, scope: Scope, context: Context) -> ParameterEntry | None:
    """What is known of the accelerator of a class of Lightning."""
    known = context.catalogue.parameters
    entries = (entry for n in qualified_names(callee, scope) for entry in known.get(n, ()))
    return next((entry for entry in entries if entry.meaning is Meaning.ACCELERATOR), None)


def _is_one_of(node: ast.expr, values: frozenset[object]) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _data_parallel(value: ast.expr, context: Context) -> None:
    rule = context.catalogue.required(DATA_PARALLEL_RULE)
    span, source = context.span(value), context.source(value)
    text = source.replace("dp", "ddp", 1)
    fix = Fix(use(text), Applicability.UNSAFE, (Edit(span, text),))
    context.report(rule, span, source, [fix], replacement=text)


def _is_for_device(node: ast.Call, gpus: ast.keyword | None) -> bool:
    """Whether a call requests an accelerator of its own, with whatever plugin Lightning makes."""
    accelerator, strategy = keyword_of(node, "accelerator"), keyword_of(node, "strategy")
    if keyword_of(node, "plugins") is not None or (accelerator is None and gpus is None):
        return False
    if accelerator is not None and _text(accelerator) in _OTHER_DEVICES:
        return False
    return strategy is None or not _text(strategy).startswith(_OWN_PRECISION)


def _text(keyword: ast.keyword) -> str:
    value = keyword.value
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _precision(node: ast.Call, context: Context) -> None:
    precision = keyword_of(node, "precision")
    if precision is not None and _is_one_of(precision.value, _AUTOCAST):
        rule = context.catalogue.required("lightning-precision")
        context.report(rule, context.span(precision), context.source(precision), [])

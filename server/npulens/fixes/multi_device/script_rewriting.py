"""The door: the text of a script for one device to that of one process among several."""

import ast

from npulens.fixes.imports import FOR_EFFECT, imports_module
from npulens.fixes.multi_device import helpers, steps
from npulens.fixes.multi_device.actions import Actions
from npulens.fixes.multi_device.plan import Insertion, Plan
from npulens.fixes.multi_device.planning import plan_for
from npulens.fixes.multi_device.reading import OtherModule
from npulens.fixes.multi_device.transformer import transformed
from npulens.fixes.numbered_cards import card_changes
from npulens.fixes.scripts import (
    Cards,
    Script,
    UnclearError,
    comes_before_setup,
    read_script,
    sets_environment,
)
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.parsing import module_tree
from npulens.syntax.values import Name
from npulens.syntax.walking import nodes_below


def distributed_text(text: str, model: str | None, cards: Cards, other_module: OtherModule) -> str:
    """A script that trains in one process for each card.

    Args:
        text: The script for one device.
        model: The variable that holds the model; `None` for all that are trained.
        cards: How its processes take their cards.
        other_module: Finds other modules of the project.

    Raises:
        UnclearError: It is not clear how; the reason says what and where.
    """
    try:
        tree = module_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnclearError(line, "distributed.does-not-parse") from error
    script = read_script(tree, text, cards)
    plan, _ = plan_for(script, model, other_module)
    gone = [node for statement in plan.removed for node in nodes_below(statement)]
    numbered = [c for c in card_changes(script) if not any(c.node is node for node in gone)]
    actions = Actions(script)
    _import(script, plan, actions)
    _define_helpers(script, plan, actions)
    steps.join_and_leave(plan, actions, cards)
    steps.divide_loaders(plan, actions)
    steps.wrap_models(plan, actions, cards)
    steps.take_data_parallel_away(plan, actions)
    steps.tell_epochs(plan, actions)
    steps.mean_inner_models(plan, actions)
    steps.let_first_speak(plan, actions)
    steps.reduce_figures(plan, actions)
    steps.let_launcher_choose(plan, actions)
    steps.take_any_number_away(numbered, actions)
    return transformed(text, actions)


def _import(script: Script, plan: Plan, actions: Actions) -> None:
    """The modules that the new code names.

    Raises:
        UnclearError: One of their names is something else in the script.
    """
    body = script.tree.body
    place = (plan.entry.first.lineno, plan.entry.first.col_offset)
    imports = [s for s in body if isinstance(s, (ast.Import, ast.ImportFrom))]
    first = next((s for s in imports if getattr(s, "module", "") != "__future__"), None)
    torch = [s for s in body if imports_module([s], "torch")]
    if first is None or not torch:
        raise UnclearError(plan.entry.first.lineno, "distributed.nothing-before")
    for module in ("os", "sys", "torch"):
        is_late = plan.entry.function is None and not any(
            isinstance(s, ast.Import)
            and any(a.name.partition(".")[0] == module and a.asname is None for a in s.names)
            for s in body
            if s.lineno < plan.entry.first.lineno
        )
        if resolve_name(Name(module), script.module, place) == [Qualified(module)]:
            if is_late:
                actions.insert(Insertion(first), f"import {module}")
        else:
            if module in script.module.module.names:
                line = plan.entry.first.lineno
                raise UnclearError(line, "distributed.other-module", module=module)
            actions.insert(Insertion(first), f"import {module}")
    if script.cards.imports_plugin and not imports_module(body, "torch_npu"):
        plain = [s for s in torch if isinstance(s, ast.Import)]
        last = plain[0] if plain else torch[0]
        while plain and (at := body.index(last) + 1) < len(body) and body[at] in plain:
            last = body[at]
        actions.insert(Insertion(last, True), FOR_EFFECT)


def _define_helpers(script: Script, plan: Plan, actions: Actions) -> None:
    """The functions that the new code calls, behind the imports at the top."""
    wanted = []
    if plan.rebuilt or plan.reassigned:
        wanted.append(helpers.LOADER)
    if plan.figures or plan.agreed_figures:
        wanted.append(helpers.figure_helper(script.cards))
    if plan.agreed_conditions:
        wanted.append(helpers.agreement_helper(script.cards))
    if not wanted:
        return
    body = script.tree.body
    last = body[0]
    for statement in body:
        is_import = isinstance(statement, (ast.Import, ast.ImportFrom, ast.Try))
        if is_import and comes_before_setup(statement, True):
            last = statement
        elif not isinstance(statement, ast.Expr) and not sets_environment(statement):
            break
    actions.insert(Insertion(last, True), *(f"\n\n{each}" for each in wanted))

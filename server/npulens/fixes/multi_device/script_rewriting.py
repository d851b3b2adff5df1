"""The door: from a program for one device to that of one process among several."""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from npulens.fixes.imports import FOR_EFFECT, binds_module, imports_module, running_imports
from npulens.fixes.multi_device import helpers, steps
from npulens.fixes.multi_device.actions import Actions, FileActions
from npulens.fixes.multi_device.other_parameters import Difference, differences
from npulens.fixes.multi_device.plan import Insertion, Plan
from npulens.fixes.multi_device.planning import plan_for
from npulens.fixes.multi_device.reading import Reading
from npulens.fixes.multi_device.transformer import transformed
from npulens.fixes.numbered_cards import CardChange, card_changes
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
from npulens.syntax.walking import is_main_guard, nodes_below
from npulens.training.program import Module, Program

_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)


class ProjectFile(NamedTuple):
    """A module of a project.

    Attributes:
        path: From the root of the project.
        name: Its full name, as the script that is started imports it.
        is_package: It is the `__init__` of a package.
    """

    path: str
    name: str
    text: str
    is_package: bool = False


class Rewriting(NamedTuple):
    """What is made of a program.

    Attributes:
        texts: The files that change, by their paths.
        differences: Why its parameters come out different than on one card, and what of it no file
            shows.
    """

    texts: dict[str, str]
    differences: tuple[Difference, ...]


FindFile = Callable[[str], ProjectFile | None]
"""From the full name of a module to its file; `None` of all that the project does not have."""


def distributed_program(
    start: ProjectFile, model: str | None, cards: Cards, find: FindFile = lambda _: None
) -> Rewriting:
    """A program that trains in one process for each card.

    Args:
        start: The script for one device that is started.
        model: The variables that hold the models; `None` for all that are trained.
        cards: How its processes take their cards.
        find: Finds other modules of the project.

    Raises:
        UnclearError: It is not clear how; the reason says what and where.
    """
    reading = _read(start, cards, find)
    plan = plan_for(reading, model)
    actions = Actions(reading)
    steps.join_and_leave(plan, actions, cards)
    steps.divide_loaders(plan, actions)
    steps.wrap_models(plan, actions, cards)
    steps.average_gradients(plan, actions)
    steps.take_data_parallel_away(plan, actions)
    steps.tell_epochs(plan, actions)
    steps.mean_inner_models(plan, actions)
    steps.let_first_speak(plan, actions)
    steps.reduce_figures(plan, actions)
    steps.keep_set_tensors_alike(plan, actions)
    steps.count_one_card(plan, actions)
    steps.let_launcher_choose(plan, actions)
    steps.take_any_number_away(list(_numbered(reading, plan)), actions)
    texts = {file.script.path or "": text for file, text in _rewritten(actions, plan)}
    return Rewriting(texts, tuple(differences(reading, plan)))


def _read(start: ProjectFile, cards: Cards, find: FindFile) -> Reading:
    """The program of a script.

    Raises:
        UnclearError: The script does not parse.
    """
    scripts: dict[ast.Module, Script] = {}
    modules: dict[str, Module | None] = {}

    def module_of(file: ProjectFile) -> Module:
        tree = module_tree(file.text)
        scripts[tree] = read_script(tree, file.text, cards, file.path)
        return Module(file.name, tree, scripts[tree].module, file.is_package)

    def find_module(name: str) -> Module | None:
        file = find(name)
        if file is None:
            return None
        if file.path not in modules:
            try:
                modules[file.path] = module_of(file)
            except _BROKEN:
                modules[file.path] = None
        return modules[file.path]

    try:
        modules[start.path] = first = module_of(start)
    except _BROKEN as error:
        line = getattr(error, "lineno", None) or 1
        raise UnclearError(line, "distributed.does-not-parse") from error
    program = Program(first, find_module)
    return Reading(program, {m.tree: scripts[m.tree] for m in program.modules})


def _numbered(reading: Reading, plan: Plan) -> Iterator[CardChange]:
    """The cards that files name by their number.

    Raises:
        UnclearError: One is named in a way that is not rewritten.
    """
    gone = {node for statement in plan.removed for node in nodes_below(statement)}
    for tree, script in reading.scripts.items():
        is_started = script is reading.script
        reached = [n for n in nodes_below(tree) if is_started or n in reading.flow.places]
        try:
            found = card_changes(script, reached)
        except UnclearError as error:
            error.path = script.path
            raise
        yield from (change for change in found if change.node not in gone)


def _rewritten(actions: Actions, plan: Plan) -> Iterator[tuple[FileActions, str]]:
    """The files that change, with their new texts."""
    for file in actions.files.values():
        if file.is_empty:
            continue
        _define_helpers(file)
        try:
            _import(file, plan.entry.first if file.is_started else None)
        except UnclearError as error:
            error.path = file.script.path
            raise
        yield file, transformed(file.script.lines.text, file)


def _import(file: FileActions, entry: ast.stmt | None) -> None:
    """The modules that the new code names.

    Args:
        file: What is done to a file.
        entry: The statement before which a process joins the group, if it does in this file.

    Raises:
        UnclearError: One of their names is something else in the file.
    """
    script = file.script
    body = script.tree.body
    imports = [s for s in body if isinstance(s, (ast.Import, ast.ImportFrom))]
    first: ast.stmt | None = next(
        (s for s in imports if getattr(s, "module", "") != "__future__"), None
    )
    if first is None and not file.is_started:
        first = next((s for s in body if not _comes_first(s)), None)
    if first is None and file.modules:
        raise UnclearError(body[0].lineno, "distributed.nothing-before")
    torch = [s for s in body if imports_module([s], "torch")]
    place = None if entry is None else (entry.lineno, entry.col_offset)
    for module in sorted(file.modules):
        assert first is not None
        if resolve_name(Name(module), script.module, place) == [Qualified(module)]:
            if entry is not None and not _is_imported(module, body, entry):
                file.insert(Insertion(first), f"import {module}")
        else:
            if module in script.module.module.names:
                line = first.lineno if entry is None else entry.lineno
                raise UnclearError(line, "distributed.other-module", module=module)
            file.insert(Insertion(first), f"import {module}")
    if file.is_started and script.cards.imports_plugin and not imports_module(body, "torch_npu"):
        plain = [s for s in torch if isinstance(s, ast.Import)]
        if not torch:
            assert first is not None
            file.insert(Insertion(first), FOR_EFFECT)
            return
        last = plain[0] if plain else torch[0]
        while plain and (at := body.index(last) + 1) < len(body) and body[at] in plain:
            last = body[at]
        file.insert(Insertion(last, True), FOR_EFFECT)


def _is_imported(module: str, body: list[ast.stmt], entry: ast.stmt) -> bool:
    """Whether `import` has surely run for a module when the statement `entry` does."""
    outer = next(s for s in body if s.lineno <= entry.lineno <= (s.end_lineno or 0))
    own, runs = list[ast.stmt](), entry
    if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        own = [s for s in outer.body if s.lineno < entry.lineno]
        runs = next((s for s in body if is_main_guard(s)), body[-1])
    before = [s for s in running_imports(body) if s.lineno < runs.lineno]
    return binds_module([*before, *own], module)


def _comes_first(statement: ast.stmt) -> bool:
    """Whether a statement is the text about a module, or what Python wants at the top."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _define_helpers(file: FileActions) -> None:
    """The functions that the new code calls, behind the imports at the top."""
    cards = file.script.cards
    texts = {
        "loader_of_process": helpers.LOADER,
        "averaged_over_processes": helpers.averaging_helper(cards),
        "over_processes": helpers.figure_helper(cards),
        "in_any_process": helpers.agreement_helper(cards),
        "same_in_processes": helpers.setting_helper(cards),
    }
    wanted = [text for name, text in texts.items() if name in file.helpers]
    if not wanted:
        return
    body = file.script.tree.body
    last = body[0]
    for statement in body:
        is_import = isinstance(statement, (ast.Import, ast.ImportFrom, ast.Try))
        if is_import and comes_before_setup(statement, True):
            last = statement
        elif not isinstance(statement, ast.Expr) and not sets_environment(statement):
            break
    late = next((s for s in body if imports_module([s], "torch")), last)
    if late.lineno > last.lineno:  # behind a definition
        last = late
    file.insert(Insertion(last, True), *(f"\n\n{each}" for each in wanted))

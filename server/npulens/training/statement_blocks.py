"""The blocks of statements that a statement or function has."""

import ast


def block_with(owner: ast.AST, statement: ast.stmt) -> list[ast.stmt] | None:
    """The block with a statement, `None` if it is in none of them."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(owner, name, None)
        if isinstance(block, list) and statement in block:
            return block
    for handler in getattr(owner, "handlers", ()):
        if statement in handler.body:
            return list(handler.body)
    return None

"""The commands that run a script on the emulated NPU, and clear what it has left.

A run executes code of the workspace. It is done for the command alone, which a client sends when
its user requests that; nothing else in the server starts one.
"""

from typing import Any

from lsprotocol import types

from npulens.lsp.session.language_server import NpulensServer

VERIFY = "npulens.verify"
TRACE_SHAPES = "npulens.traceShapes"
CLEAR_RUN = "npulens.clearRun"


def register(server: NpulensServer) -> None:
    """Take the commands."""

    @server.command(VERIFY)
    async def verify(params: types.ExecuteCommandParams) -> dict[str, Any]:
        # What runs are made with is not loaded when the server starts.
        from npulens.lsp.requests.script_runs import ScriptRuns

        return await ScriptRuns(server).verify(params)

    @server.command(TRACE_SHAPES)
    async def trace_shapes(params: types.ExecuteCommandParams) -> dict[str, Any]:
        from npulens.lsp.requests.script_runs import ScriptRuns

        return await ScriptRuns(server).verify(params, with_shapes=True)

    @server.command(CLEAR_RUN)
    async def clear_run(params: types.ExecuteCommandParams) -> None:
        server.session.runs.clear()
        server.session.show_again()
        server.refresh()

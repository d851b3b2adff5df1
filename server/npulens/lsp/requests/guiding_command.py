"""The command that answers with the migration guide of a folder."""

from typing import Any

from lsprotocol import types

from npulens.lsp.session.language_server import NpulensServer

GUIDE = "npulens.guide"


def register(server: NpulensServer) -> None:
    """Take the command."""

    @server.command(GUIDE)
    async def guide(params: types.ExecuteCommandParams) -> dict[str, Any]:
        # What guides are made with is not loaded when the server starts.
        from npulens.lsp.requests.guide_answers import GuideAnswers

        return await GuideAnswers(server).guide(params)

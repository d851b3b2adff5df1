"""Notebooks: their Python cells are one text, so that names of one are known in the next."""

from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types

from npulens.lsp.session.convert import to_text_changes
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.session import Session, file_path
from npulens.lsp.session.views import View, joined
from npulens.syntax.cells import python_of_cell
from npulens.text.document import Document
from npulens.text.kinds import Kind

SYNCHRONISATION = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            notebook="jupyter-notebook", cells=[types.NotebookCellLanguage("python")]
        )
    ],
    save=True,
)


@dataclass(eq=False)
class _Notebook:
    """A notebook that the client has open.

    Attributes:
        version: The editor's count of its states.
        order: The names of its cells.
        cells: Their texts; of a cell in another language there is none.
    """

    uri: str
    path: Path | None
    version: int
    order: list[str]
    cells: dict[str, Document] = field(default_factory=dict)

    def take(self, item: types.TextDocumentItem) -> None:
        if item.language_id == "python":
            self.cells[item.uri] = Document(item.uri, item.text, item.version, Kind.PYTHON)

    def view(self) -> View:
        found = [(uri, self.cells[uri]) for uri in self.order if uri in self.cells]
        if not found:
            found = [(self.uri, Document(self.uri, "", self.version, Kind.PYTHON))]
        cells = [(uri, document, python_of_cell(document.text)) for uri, document in found]
        return joined(str(self.path or self.uri), self.version, cells)


class Notebooks:
    """The notebooks of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._notebooks: dict[str, _Notebook] = {}

    def open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Take in a notebook with its cells."""
        given = params.notebook_document
        order = [cell.document for cell in given.cells]
        notebook = _Notebook(given.uri, file_path(given.uri), given.version, order)
        for item in params.cell_text_documents:
            notebook.take(item)
        self._session.close(given.uri)
        self._notebooks[given.uri] = notebook
        self._session.show(given.uri, notebook.path, notebook.view())

    def change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Take in cells that came, went, moved or were edited."""
        notebook = self._notebooks.get(params.notebook_document.uri)
        opened = self._session.opened.get(params.notebook_document.uri)
        if notebook is None or opened is None:
            return
        notebook.version = params.notebook_document.version
        change = params.change.cells
        if change is not None and change.structure is not None:
            _restructure(notebook, change.structure)
        for edited in (change and change.text_content) or ():
            before = notebook.cells.get(edited.document.uri)
            if before is not None:
                notebook.cells[edited.document.uri] = before.edited(
                    tuple(to_text_changes(edited.changes)),
                    self._session.terms.encoding,
                    edited.document.version,
                )
        self._session.update(opened, notebook.view())

    def save(self, uri: str) -> None:
        """Look again at what is on the disk."""
        if uri in self._notebooks:
            self._session.save(uri)

    def close(self, uri: str) -> None:
        """Forget a notebook and clear the diagnostics of its cells."""
        if self._notebooks.pop(uri, None) is not None:
            self._session.close(uri)


def _restructure(notebook: _Notebook, structure: types.NotebookDocumentCellChangeStructure) -> None:
    moved = structure.array
    added = [cell.document for cell in moved.cells or ()]
    notebook.order[moved.start : moved.start + moved.delete_count] = added
    for item in structure.did_open or ():
        notebook.take(item)
    for closed in structure.did_close or ():
        notebook.cells.pop(closed.uri, None)


def register(server: NpulensServer) -> None:
    """Serve notebooks."""
    notebooks = Notebooks(server.session)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        notebooks.open(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        notebooks.change(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveNotebookDocumentParams) -> None:
        notebooks.save(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        notebooks.close(params.notebook_document.uri)

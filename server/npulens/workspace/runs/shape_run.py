"""The dynamic shapes of many files, ranked together."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from npulens.analysis import analyze_shapes
from npulens.catalog.messages import cannot_be_read, message
from npulens.catalog.model import LocalizedText, Rule, Target
from npulens.catalog.tables import Catalogue
from npulens.shapes.ranking.hotspots import Ranked
from npulens.text.decoding import UndecodableSource, decode_source
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.runs.run import MAX_FILE_SIZE, internal_error
from npulens.workspace.settings.configuration import absolute


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file."""

    document: Document
    rule: Rule
    ranked: Ranked


@dataclass(slots=True)
class ShapeRun:
    """What was found in files, the worst first."""

    places: list[Place] = field(default_factory=list)
    problems: dict[str, LocalizedText] = field(default_factory=dict)


def places_in(paths: Iterable[Path], catalogue: Catalogue, target: Target) -> ShapeRun:
    """The places of all Python files among some paths, with what is known of their project."""
    found = ShapeRun()
    for path in paths:
        if kind_by_name(str(path)) is not Kind.PYTHON:
            continue
        try:
            _add(found, path, catalogue, target)
        except Exception as error:  # one file must not end the check of the others
            found.problems[str(path)], _ = internal_error(error)
    found.places.sort(key=lambda place: -place.ranked.score)
    return found


def _add(found: ShapeRun, path: Path, catalogue: Catalogue, target: Target) -> None:
    try:
        data = path.read_bytes()
        if b"torch" not in data or len(data) > MAX_FILE_SIZE:
            return
        document = Document(str(path), decode_source(data).text)
    except OSError as error:
        found.problems[str(path)] = cannot_be_read(error)
        return
    except UndecodableSource:
        found.problems[str(path)] = message("error.is-not-in-encoding")
        return
    full = absolute(path)
    project = replace(target.project, root=str(project_root(full) or Path.cwd()))
    within = replace(document, path=str(full))
    for ranked in analyze_shapes(within, catalogue, replace(target, project=project)).ranked:
        rule = catalogue.rule_named(ranked.hotspot.rule)
        if rule is not None:
            found.places.append(Place(document, rule, ranked))

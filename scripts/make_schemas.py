"""Write `docs/schemas`: JSON Schemas of files that users write, and of what commands print.

    python scripts/make_schemas.py

Those of the configuration and of rules are for editors, those of the guide and of `verify` for
programs. What npulens itself accepts is decided
where it reads the files, from which the names below are taken.
"""

import json
from pathlib import Path
from typing import Any

from npulens.catalog import fields, native_sections, sections
from npulens.catalog.model import LANGUAGES, Applicability, MigrationStyle, Severity
from npulens.catalog.sections import Section
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.workspace.files.folders import STATE_FILE
from npulens.workspace.guiding.guide_points import guide_plan
from npulens.workspace.guiding.guide_records import STATES as GUIDE_STATES
from npulens.workspace.guiding.guide_state import DONE, HAND, OPEN, RUN, SKIPPED
from npulens.workspace.guiding.guide_state import VERSION as GUIDE_VERSION
from npulens.workspace.guiding.project_guide import CODE
from npulens.workspace.settings.configuration import NOT_OVERRULED, SETTLED
from npulens.workspace.settings.project_version import NEWEST, OLDEST
from npulens.workspace.verifying.agreement import Agreement
from npulens.workspace.verifying.npu_apis import FAILS, FALLS_BACK, MAY_FAIL, MAY_FALL_BACK
from npulens.workspace.verifying.outcomes import Outcome, Status

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def one_of(values: Any) -> Schema:
    return {"enum": [value.value for value in values]}


REASONS = read_reasons(rules_folder())
WORDS: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_MINORS = "|".join(str(minor) for minor in range(OLDEST.minor, NEWEST.minor + 1))
VERSION: Schema = {"type": "string", "pattern": rf"^2\.({_MINORS})(\.\w+)*(\+[\w.]+)?$"}
CONFIGURATION: dict[str, tuple[str, Schema]] = {
    "torch-version": ("PyTorch release that the code shall run on, such as 2.8", VERSION),
    "migration-style": ("Which fix is preferred", one_of(MigrationStyle)),
    "autoload": (
        "Whether PyTorch loads torch_npu by itself, so that fixes need not import it",
        {"type": "boolean"},
    ),
    "select": ("Rules to report: codes, names or starts of codes", WORDS),
    "extend-select": ("Rules to report besides those", WORDS),
    "ignore": ("Rules to leave out", WORDS),
    "exclude": ("Patterns as in .gitignore for what is not checked", WORDS),
    "respect-gitignore": (
        "Whether what git ignores is left out below folders",
        {"type": "boolean"},
    ),
    "per-file-ignores": (
        "Patterns, each with rules to leave out where it fits",
        {"type": "object", "additionalProperties": WORDS},
    ),
    "severities": (
        "Rules, each with how much it matters",
        {"type": "object", "additionalProperties": one_of(Severity)},
    ),
    "reasons": (
        "Reasons for which places need nothing, each with how much these matter all the same",
        {
            "type": "object",
            "propertyNames": {"enum": [name for name in REASONS if name != NOT_OVERRULED]},
            "additionalProperties": {"enum": [*(each.value for each in Severity), SETTLED]},
        },
    ),
    "extend-rules": ("Rule files of your own", WORDS),
    "language": ("The language of messages", {"enum": list(LANGUAGES)}),
}
"""What each key says, and its values."""

TEXTS: Schema = {
    "type": "object",
    "properties": {language: {"type": "string", "minLength": 1} for language in LANGUAGES},
    "required": list(LANGUAGES),
    "additionalProperties": False,
}
KNOWN_READERS: dict[Any, Schema] = {
    fields.read_flag: {"type": "boolean"},
    fields.read_string: {"type": "string", "minLength": 1},
    fields.read_localized: TEXTS,
    fields.read_template: TEXTS,
    fields.read_position: {"type": "integer", "minimum": 0},
    fields.read_severity: one_of(Severity),
    fields.read_applicability: one_of(Applicability),
}
"""Of other readers the schema knows no more than that they are there."""


def configuration_schema() -> Schema:
    properties = {key: {"description": text, **of} for key, (text, of) in CONFIGURATION.items()}
    return {
        "$schema": DIALECT,
        "title": "Configuration of npulens (npulens.toml, or tool.npulens of pyproject.toml)",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def rules_schema() -> Schema:
    modules = (sections, native_sections)
    found = [item for module in modules for item in vars(module).items()]
    # What has a private name is not a list of a file, but a part of an entry.
    public = [value for name, value in found if not name.startswith("_")]
    lists = {value.name: entries(value) for value in public if isinstance(value, Section)}
    return {
        "$schema": DIALECT,
        "title": "Rule file of npulens",
        "type": "object",
        "properties": {"family": {"type": "string"}, **dict(sorted(lists.items()))},
        "required": ["family"],
        "additionalProperties": False,
    }


def rule_schema() -> Schema:
    """A rule file in TOML: the fields of one rule, and lists whose entries need not name it."""
    lists = rules_schema()["properties"]
    code: Schema = {"type": "string", "minLength": 1}
    example = {
        "type": "object",
        "properties": {"before": code, "after": code},
        "required": ["before"],
        "additionalProperties": False,
    }
    of_rule = dict(lists["rules"]["items"]["properties"])
    del of_rule["name"]
    of_rule |= {"examples": {"type": "array", "items": example}}
    of_rule |= {"valid": {"type": "array", "items": code}}
    others = {name: without_rule(of) for name, of in lists.items() if name != "rules"}
    return {
        "$schema": DIALECT,
        "title": "Rule of npulens, in TOML",
        "type": "object",
        "properties": {**of_rule, **others},
        "additionalProperties": False,
    }


def without_rule(of_list: Schema) -> Schema:
    """A list whose entries need not say their rule."""
    if "items" not in of_list:
        return of_list
    item = of_list["items"]
    return {**of_list, "items": {**item, "required": [n for n in item["required"] if n != "rule"]}}


def entries(section: Section) -> Schema:
    item = {
        "type": "object",
        "properties": {name: KNOWN_READERS.get(r, {}) for name, r in section.readers.items()},
        "required": [name for name in section.readers if name not in section.defaults],
        "additionalProperties": False,
    }
    return {"type": "array", "items": item}


COUNT: Schema = {"type": "integer", "minimum": 0}
PLACE: dict[str, Schema] = {
    "path": {"type": ["string", "null"]},
    "cell": {"type": "integer", "minimum": 1},
    "line": {"type": ["integer", "null"], "minimum": 1},
}
"""A line; in a notebook with the cell, from whose start it counts."""


def objects(properties: dict[str, Schema], *, optional: tuple[str, ...] = ("cell",)) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def lists(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def verify_schema() -> Schema:
    text: Schema = {"type": "string"}
    kinds = ["shape", "wait", FAILS, MAY_FAIL, FALLS_BACK, MAY_FALL_BACK, "type"]
    site = objects(
        {**PLACE, "name": text, "kind": {"enum": kinds}, "count": COUNT},
        optional=("cell", "kind"),
    )
    number: Schema = {"type": "number"}
    divergence = {
        "what": {"enum": ["loss", "parameter", "count"]},
        **dict.fromkeys(("step", "parameter"), COUNT),
        **dict.fromkeys(("original", "migrated"), number),
    }
    comparison = {
        "losses": COUNT,
        "steps": COUNT,
        "largest": number,
        "problem": text,
        "deciding": lists(text),
        "divergence": or_null(objects(divergence)),
    }
    failed = {"name": text, **PLACE, "outcome": one_of(Outcome), "message": text}
    tests = {"passed": COUNT, "skipped": COUNT, "failed": lists(objects(failed))}
    agreed = {
        "agreement": one_of(Agreement),
        **PLACE,
        "codes": lists(text),
        "seen": lists(site),
    }
    line: Schema = {"type": "integer", "minimum": 1}
    unreached = {"function": {"type": ["string", "null"]}, "line": line, "end_line": line}
    found = {
        "status": one_of(Status),
        "outcome": one_of(Outcome),
        "message": text,
        "way_on": {"type": ["string", "null"]},
        **PLACE,
        "detail": text,
        "style": or_null(one_of(MigrationStyle)),
        "fixed": COUNT,
        "arguments": lists(text),
        "arguments_left": lists(objects({"argument": text, "message": text})),
        "steps": COUNT,
        "losses": lists(number),
        "tests": or_null(objects(tests)),
        "cuda_calls": lists(site),
        "apis": lists(site),
        "events": lists(site),
        "comparison": or_null(objects(comparison)),
        "agreement": or_null(lists(objects(agreed))),
        "unreached": or_null(lists(objects(unreached))),
        "output": lists(text),
    }
    return {
        "$schema": DIALECT,
        "title": "What `npulens verify --output-format json` prints",
        **objects(found),
    }


DAY: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}


def guide_state_schema() -> Schema:
    """The file in which a project keeps what was ticked by hand, and its runs."""
    mark = {
        "state": {"enum": [DONE, SKIPPED, OPEN]},
        "by": {"enum": [HAND, RUN]},
        "when": DAY,
        "note": {"type": "string"},
    }
    points = {"type": "object", "additionalProperties": objects(mark, optional=("note",))}
    return {
        "$schema": DIALECT,
        "title": f"State of the migration guide ({STATE_FILE})",
        **objects({"version": {"const": GUIDE_VERSION}, "points": points}),
    }


def guide_schema() -> Schema:
    text: Schema = {"type": "string"}
    point = {
        "id": {"enum": [each.id for each in guide_plan().points]},
        "title": text,
        "text": text,
        "state": {"enum": list(GUIDE_STATES)},
        "by": {"enum": [HAND, RUN, CODE, None]},
        "when": or_null(DAY),
        "note": text,
        "evidence": text,
        "place": or_null(objects({"path": text, "line": {"type": "integer", "minimum": 1}})),
        "command": {"type": ["string", "null"]},
        "read": lists(text),
    }
    phase = {"id": {"enum": [each.id for each in guide_plan().phases]}, "title": text}
    found = {
        "version": {"const": GUIDE_VERSION},
        "root": text,
        "counts": objects(dict.fromkeys(GUIDE_STATES, COUNT)),
        "next": {"type": ["string", "null"]},
        "phases": lists(objects({**phase, "points": lists(objects(point))})),
    }
    return {
        "$schema": DIALECT,
        "title": "What `npulens guide --output-format json` prints",
        **objects(found),
    }


def schemas() -> dict[str, str]:
    """The text of each file."""
    made = {
        "guide-state.schema.json": guide_state_schema(),
        "guide.schema.json": guide_schema(),
        "npulens.schema.json": configuration_schema(),
        "rule.schema.json": rule_schema(),
        "rules.schema.json": rules_schema(),
        "verify.schema.json": verify_schema(),
    }
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in made.items()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""What is known of the name under the cursor, and of the findings there."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lsprotocol import types

from npulens.catalog.facts import NameFacts, ReleaseStatus, name_facts, variable_facts
from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Language, MigrationStyle, Rule
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.tables import Catalogue
from npulens.catalog.verdict_tables import read_reasons
from npulens.checks.names_at import NameAt, names_at
from npulens.fixes.one_code.vocabulary import neutral_name
from npulens.fixes.written_lines import writes_module, written_lines
from npulens.fused.patterns import read_patterns
from npulens.lsp.requests.shape_paths import paths_at, shape_at
from npulens.lsp.session.engine import Analysis, OpenDocument
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.rule_pages import page_uri
from npulens.lsp.session.run_diagnostics import ShapesByName
from npulens.syntax.words import word_at
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.verdicts.reason_wording import shortened, why_settled

_MOST_FINDINGS = 3


def hover_at(
    opened: OpenDocument, analysis: Analysis, offset: int, seen: ShapesByName
) -> tuple[str, Span] | None:
    """A text in Markdown and what it is about, `None` if nothing is known at a place.

    Args:
        opened: The document.
        analysis: Its analysis, with the shapes of all names.
        offset: The place.
        seen: The shapes of the last run.
    """
    language = analysis.terms.language
    here = [f for f in analysis.findings if f.span.start <= offset <= f.span.end]
    named = _named(opened, analysis, offset)
    parts = []
    span = None
    if named is not None:
        facts, span = named
        style = analysis.file_context.configuration.style
        parts.append("\n\n".join(_of_name(facts, style, language)))
    if here:
        text = analysis.view.document.text
        parts += ["\n\n".join(_of_finding(f, text, language)) for f in here[:_MOST_FINDINGS]]
        span = span or here[0].span
    else:
        settled = [f for f in analysis.settled if f.span.start <= offset <= f.span.end]
        parts += ["\n\n".join(_of_settled(f, analysis)) for f in settled[:_MOST_FINDINGS]]
        span = span or (settled[0].span if settled else None)
    paths = paths_at(analysis, offset)
    if paths is not None:
        parts += paths[0]
        span = span or paths[1]
    shape = shape_at(analysis, offset, seen)
    if shape is not None:
        parts.append(shape[0])
        span = span or shape[1]
    return None if span is None else ("\n\n---\n\n".join(parts), span)


def _named(opened: OpenDocument, analysis: Analysis, offset: int) -> tuple[NameFacts, Span] | None:
    catalogue = analysis.file_context.catalogue
    document = analysis.view.document
    found: Sequence[NameAt]
    if document.kind is Kind.PYTHON:
        segments = opened.statements.segments
        known = {text: (segment.parsed, segment.bindings) for text, segment in segments.items()}
        found = names_at(document.text, offset, known, catalogue.native)
    else:
        word = word_at(document.text, offset)
        found = [] if word is None else [NameAt(document.text[slice(*word)], word, is_text=True)]
    for name, span, is_text in found:
        facts = variable_facts(name, catalogue) if is_text else name_facts(name, catalogue)
        if name.startswith("torch_npu.") and (facts is None or facts.rule is None):
            rule = _rule_of_operator(name, catalogue)
            facts = facts if rule is None else replace(facts or NameFacts(name), rule=rule)
        if facts is not None:
            return facts, span
    return None


def _rule_of_operator(name: str, catalogue: Catalogue) -> Rule | None:
    """The first rule whose patterns become an operator of torch_npu; none of an unknown name."""
    found = (
        catalogue.rule_named(p.rule)
        for p in read_patterns(catalogue.patterns)
        if p.operator == name
    )
    return next((rule for rule in found if rule is not None), None)


def _of_name(facts: NameFacts, style: MigrationStyle, language: Language) -> Iterator[str]:
    yield f"**`{facts.name}`**"
    yield from _instead(facts, style, language)
    if facts.since is not None:
        yield _text("editor.since", language, version=str(facts.since))
    if facts.replaces:
        names = ", ".join(f"`{name}`" for name in facts.replaces[:8])
        yield _text("editor.replaces", language, names=names)
    if facts.note is not None:
        yield facts.note.in_language(language)
    elif facts.rule is not None and facts.rule.family == "fused":
        yield facts.rule.explanation.in_language(language)
    if facts.shimmed:
        yield _text("editor.shimmed", language)
    if facts.statuses:
        rows = [_status(status, language) for status in facts.statuses]
        yield "\n".join(
            [f"| PyTorch | {_text('editor.on-npu', language)} |", "| --- | --- |", *rows]
        )
    if facts.rule is not None:
        yield _titled(facts.rule, language)
    if facts.sources:
        source = _plain("; ".join(facts.sources))
        yield f"*{_text('editor.source', language, source=source)}*"


def _instead(facts: NameFacts, style: MigrationStyle, language: Language) -> Iterator[str]:
    """What a name becomes; first what the style writes."""
    told = []
    if facts.becomes is not None:
        told.append(_text("editor.on-the-npu", language, name=facts.becomes))
    elif facts.rule is not None and facts.rule.family == "device":
        told.append(_text("editor.no-counterpart", language))
    for_any = neutral_name(facts.name)
    if for_any is not None:
        told.append(_text("editor.agnostic-name", language, name=for_any))
    yield from reversed(told) if style is MigrationStyle.DEVICE_AGNOSTIC else told


def _status(status: ReleaseStatus, language: Language) -> str:
    releases = str(status.first)
    if status.last != status.first:
        releases += f" – {status.last}"
    support = message("editor.supported" if status.listed else "editor.not-listed")
    limits = []
    for limit in status.limits:
        if limit.note is not None:
            limits.append(limit.note.in_language(language))
        else:
            limited = message("editor.unsupported" if limit.always else "editor.limited")
            limits.append(limited.in_language(language))
        if limit.dtypes:
            limits[-1] += " " + ", ".join(f"`{dtype}`" for dtype in limit.dtypes)
    shown = " ".join(dict.fromkeys(limits)) or support.in_language(language)
    return f"| {releases} | {shown} |"


def _titled(rule: Rule, language: Language) -> str:
    """The code and name of a rule, and where it is explained."""
    title, page = f"{rule.code} {rule.name}", page_uri(rule, language)
    return title if page is None else f"[{title}]({page})"


def _of_finding(finding: Finding, text: str, language: Language) -> Iterator[str]:
    rule = finding.rule
    yield f"**{_titled(rule, language)}**"
    yield finding.message(language)
    if finding.fixes and writes_module(finding.fixes[0]):
        yield finding.fixes[0].title.in_language(language) + ":"
        lines = written_lines(text, finding.fixes[0], finding.span)
        goes = f"# {_text('report.line-goes', language)}"
        yield "\n".join(["```python", *(lines or [goes]), "```"])
    yield rule.explanation.in_language(language)


def _of_settled(finding: Finding, analysis: Analysis) -> Iterator[str]:
    """The code of a place where nothing is to be done, and why."""
    settlement = finding.settlement
    if settlement is None:
        return
    view, language = analysis.view, analysis.terms.language
    link = ""
    if settlement.span is not None:
        place = view.locate(settlement.span, analysis.terms.encoding)
        # The name of a cell has a fragment already.
        link = "" if "#" in place.part.uri else f"{place.part.uri}#L{place.range.start.line + 1}"
    why = read_reasons(rules_folder())[settlement.reason].why
    code = shortened(view.document, finding.span)
    reason = why_settled(view.document, finding.span, settlement, why, link)
    yield f"**{_text('editor.settled', language)}** {_titled(finding.rule, language)}"
    yield f"`{code}`{_text('punctuation.colon', language)}{reason.in_language(language)}"


def _text(name: MessageId, language: Language, /, **values: str) -> str:
    return message(name, **values).in_language(language)


def _plain(text: str) -> str:
    """Markdown that shows a text as it is, such as the name of `__init__.py`."""
    return re.sub(r"([\\`*_])", r"\\\1", text)


def register(server: NpulensServer) -> None:
    """Answer hovers."""
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        opened = session.of_document(uri)
        analysed = await session.analysed_part(uri)
        if opened is None or analysed is None:
            return None
        analysis, part = analysed
        if analysis.view.document.kind is not Kind.NATIVE:
            analysis = await session.with_names(analysis) or analysis
        encoding = analysis.terms.encoding
        seen = session.runs.shapes_of(opened.path, analysis.view)
        offset = analysis.view.offset_of(part, params.position, encoding)
        found = await asyncio.to_thread(hover_at, opened, analysis, offset, seen)
        if found is None:
            return None
        text, span = found
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, analysis.view.locate(span, encoding).range)

"""The page that explains a rule."""

from npulens.catalog.model import Language, Rule
from npulens.report.wording import BECOMES, EXAMPLE, FAMILY, SEVERITIES, SEVERITY
from npulens.text.kinds import Kind, kind_of


def rule_page(rule: Rule, language: Language) -> str:
    """What a rule finds, why it matters and what to do, in Markdown."""
    severity = SEVERITIES[rule.severity].in_language(language)
    parts = [
        f"# {rule.code} {rule.name}",
        f"{FAMILY.in_language(language)}: {rule.family} · "
        f"{SEVERITY.in_language(language)}: {severity}",
        rule.message.in_language(language),
        rule.explanation.in_language(language),
    ]
    for example in rule.examples:
        parts += [f"## {EXAMPLE.in_language(language)}", _code(example.before, rule)]
        if example.after is not None:
            parts += [f"{BECOMES.in_language(language)}", _code(example.after, rule)]
    if rule.url is not None:
        parts.append(f"<{rule.url}>")
    return "\n\n".join(parts) + "\n"


_FENCES = {Kind.SHELL: "bash", Kind.REQUIREMENTS: "text"}


def _code(code: str, rule: Rule) -> str:
    kind = kind_of(rule.file, code)
    return f"```{_FENCES.get(kind, kind.value)}\n{code.rstrip()}\n```"

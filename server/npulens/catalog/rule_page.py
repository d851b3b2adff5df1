"""The page that explains a rule."""

from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Language, Rule
from npulens.text.kinds import KINDS, kind_of


def rule_page(rule: Rule, language: Language) -> str:
    """What a rule finds, why it matters and what to do, in Markdown."""
    severity = message_of("severity", rule.severity.value).in_language(language)
    parts = [
        f"# {rule.code} {rule.name}",
        f"{message('rule.family').in_language(language)}: {rule.family} · "
        f"{message('rule.severity').in_language(language)}: {severity}",
        rule.message.in_language(language),
        rule.explanation.in_language(language),
    ]
    for example in rule.examples:
        parts += [
            f"## {message('rule.example').in_language(language)}",
            _code(example.before, rule),
        ]
        if example.after is not None:
            parts += [
                f"{message('rule.becomes').in_language(language)}",
                _code(example.after, rule),
            ]
    return "\n\n".join(parts) + "\n"


def _code(code: str, rule: Rule) -> str:
    return f"```{KINDS[kind_of(rule.file, code)].fence}\n{code.rstrip()}\n```"

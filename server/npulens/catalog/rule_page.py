"""The page that explains a rule."""

from collections.abc import Mapping

from npulens.catalog.model import Language, LocalizedText, Rule, Severity
from npulens.text.kinds import KINDS, kind_of

SEVERITIES: Mapping[Severity, LocalizedText] = {
    Severity.ERROR: LocalizedText("error", "错误"),
    Severity.WARNING: LocalizedText("warning", "警告"),
    Severity.INFO: LocalizedText("info", "信息"),
    Severity.HINT: LocalizedText("hint", "提示"),
}
_FAMILY = LocalizedText("Family", "类别")
_SEVERITY = LocalizedText("Severity", "级别")
_EXAMPLE = LocalizedText("Example", "示例")
_BECOMES = LocalizedText("becomes", "修改为")


def rule_page(rule: Rule, language: Language) -> str:
    """What a rule finds, why it matters and what to do, in Markdown."""
    severity = SEVERITIES[rule.severity].in_language(language)
    parts = [
        f"# {rule.code} {rule.name}",
        f"{_FAMILY.in_language(language)}: {rule.family} · "
        f"{_SEVERITY.in_language(language)}: {severity}",
        rule.message.in_language(language),
        rule.explanation.in_language(language),
    ]
    for example in rule.examples:
        parts += [f"## {_EXAMPLE.in_language(language)}", _code(example.before, rule)]
        if example.after is not None:
            parts += [f"{_BECOMES.in_language(language)}", _code(example.after, rule)]
    return "\n\n".join(parts) + "\n"


def _code(code: str, rule: Rule) -> str:
    return f"```{KINDS[kind_of(rule.file, code)].fence}\n{code.rstrip()}\n```"

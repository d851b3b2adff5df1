"""What the interface says around findings, in each language."""

from collections.abc import Mapping, Sequence

from npulens.catalog.model import Applicability, Language, LocalizedText

APPLICABILITIES: Mapping[Applicability, LocalizedText] = {
    Applicability.SAFE: LocalizedText("safe fix", "安全修复"),
    Applicability.UNSAFE: LocalizedText("unsafe fix, to be read", "不安全修复，需人工确认"),
    Applicability.MANUAL: LocalizedText("to be chosen in an editor", "需在编辑器中选择"),
}
HELP = LocalizedText("help", "建议")


def with_lines(numbers: Sequence[int], language: Language) -> str:
    """Which other lines belong to a finding."""
    listed = sorted(set(numbers))
    if language == "zh":
        return f"涉及第 {'、'.join(map(str, listed))} 行"
    word = "line" if len(listed) == 1 else "lines"
    return f"with {word} {', '.join(map(str, listed))}"


def environment_language(environment: Mapping[str, str]) -> Language:
    """The language that the environment of a process asks for."""
    for variable in ("NPULENS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def summary(
    found: tuple[int, int], files: int, safe: int, unsafe: int, checked: int, language: Language
) -> str:
    """The last line of a check.

    Args:
        found: How many problems there are, and how many pieces of advice.
        files: In how many files they are.
        safe: How many have a safe fix.
        unsafe: How many have an unsafe one.
        checked: How many files were looked at.
        language: The language to say it in.
    """
    fixes = fixable(safe, unsafe, language)
    if language == "zh":
        if not any(found):
            return f"已检查 {checked} 个文件，未发现问题。"
        return f"在 {files} 个文件中发现 {counted_findings(*found, language)}{fixes}。"
    if not any(found):
        return f"Found no problems in {_counted(checked, 'file')}."
    where = _counted(files, "file")
    return f"Found {counted_findings(*found, language)} in {where}{fixes}."


def counted_findings(problems: int, advice: int, language: Language) -> str:
    """So many problems and pieces of advice; what there is none of is left out."""
    if language == "zh":
        parts = [f"{problems} 个问题"] * bool(problems) + [f"{advice} 条建议"] * bool(advice)
        return "和 ".join(parts)
    pieces = _counted(advice, "piece") + " of advice"
    parts = [_counted(problems, "problem")] * bool(problems) + [pieces] * bool(advice)
    return " and ".join(parts)


def fixable(safe: int, unsafe: int, language: Language) -> str:
    """How many findings have fixes of which kind, in brackets; empty if none has."""
    if language == "zh":
        parts = [f"{safe} 个可自动修复"] * bool(safe) + [f"{unsafe} 个有不安全修复"] * bool(unsafe)
        return f"（{'，'.join(parts)}）" if parts else ""
    parts = [f"{safe} fixable"] * bool(safe) + [f"{unsafe} with unsafe fixes"] * bool(unsafe)
    return f" ({', '.join(parts)})" if parts else ""


NEXT_STEP = LocalizedText(
    "Next, see it run on an emulated NPU: {command}", "下一步，在模拟的 NPU 上运行：{command}"
)


def fixed_summary(findings: int, files: int, language: Language) -> str:
    """The last line of a run that fixed so many findings in so many files."""
    if language == "zh":
        return f"已在 {files} 个文件中修复 {findings} 个问题。"
    return f"Fixed {_counted(findings, 'problem')} in {_counted(files, 'file')}."


def suppressed_summary(findings: int, files: int, language: Language) -> str:
    """The last line of a run that silenced so many findings in so many files."""
    if language == "zh":
        return f"已在 {files} 个文件中为 {findings} 个问题添加忽略注释。"
    return f"Suppressed {_counted(findings, 'problem')} in {_counted(files, 'file')}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def library_summary(name: str, stopped: int, modules: int, language: Language) -> str:
    """What there is in the rule file of a library."""
    if language == "zh":
        return f"{name} 的 {modules} 个模块中，有 {stopped} 个公开 API 无法在 NPU 上运行。"
    apis = "1 public API does" if stopped == 1 else f"{stopped} public APIs do"
    return f"In {modules} modules of {name}, {apis} not run on the NPU."

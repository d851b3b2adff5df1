"""What a page about a project says around its figures, in each language."""

from collections.abc import Mapping

from npulens.catalog.model import Applicability, Language, LocalizedText, MigrationStyle
from npulens.report.page_model import ScriptRow
from npulens.workspace.migrating.readiness import Readiness

_ = LocalizedText

STATES: Mapping[Readiness, LocalizedText] = {
    Readiness.AS_IS: _("Runs as it is", "可直接运行"),
    Readiness.SAFE: _("After safe fixes", "安全修复后可运行"),
    Readiness.REVIEW: _("After review", "需人工确认"),
    Readiness.BLOCKED: _("Blocked", "受阻"),
    Readiness.UNKNOWN: _("Not judged", "未能判断"),
    Readiness.OTHER: _("Without PyTorch", "未使用 PyTorch"),
}
MEANINGS: Mapping[Readiness, LocalizedText] = {
    Readiness.AS_IS: _(
        "No error and no warning. Advice on speed may be left.",
        "没有错误和警告，可能还有性能方面的建议。",
    ),
    Readiness.SAFE: _(
        "Every error and warning has a safe fix: npulens applies it, results stay the same.",
        "所有错误和警告都有安全修复：由 npulens 自动完成，不改变计算结果。",
    ),
    Readiness.REVIEW: _(
        "What is left has an unsafe fix that somebody reads, or is a warning that somebody judges.",
        "其余问题要么有不安全修复，需人工审阅；要么是没有修复的警告，需人工判断。",
    ),
    Readiness.BLOCKED: _(
        "An error has no fix, or CUDA operators have to be ported: somebody writes code.",
        "存在无法自动修复的错误，或有 CUDA 算子需要移植：需人工编写代码。",
    ),
    Readiness.UNKNOWN: _(
        "It, or a part of it, could not be read or parsed, and the rest is not blocked.",
        "文件或其中一部分无法读取或解析，其余部分未受阻。",
    ),
    Readiness.OTHER: _(
        "It imports neither PyTorch nor a library for it; it is not in the share.",
        "未导入 PyTorch 及其相关库，不计入比例。",
    ),
}
FIXES: Mapping[Applicability, LocalizedText] = {
    Applicability.SAFE: _("safe fix", "安全修复"),
    Applicability.UNSAFE: _("unsafe fix", "不安全修复"),
    Applicability.MANUAL: _("by hand", "人工处理"),
}
STYLES: Mapping[MigrationStyle, LocalizedText] = {
    MigrationStyle.NPU: _("NPU-only code", "仅 NPU 代码"),
    MigrationStyle.DEVICE_AGNOSTIC: _("device-agnostic code", "设备无关代码"),
    MigrationStyle.RUNTIME_SHIM: _("run-time shim", "运行时自动迁移"),
}
FAMILIES: Mapping[str, LocalizedText] = {
    "engine": _("Not readable", "无法读取"),
    "device": _("Devices", "设备"),
    "parallel": _("Parallel training", "并行训练"),
    "precision": _("Precision", "精度"),
    "layout": _("Memory layout", "内存布局"),
    "api": _("PyTorch API", "PyTorch API"),
    "library": _("Libraries", "第三方库"),
    "fused": _("Fused operators", "融合算子"),
    "dynamic": _("Dynamic shapes", "动态形状"),
    "launch": _("Launch and settings", "启动与配置"),
}
"""The families of the rules that npulens brings; those of a user's own are shown as they are."""
REACHED: Mapping[str, LocalizedText] = {
    "training": _("forward pass or training", "前向或训练"),
    "evaluation": _("evaluation or start-up", "评估或启动"),
    "unknown": _("not known", "未知"),
}
_SCRIPT_STATE = _(
    "{state} ({in_state} of the {files} files with PyTorch that it reaches)",
    "{state}（所涉及的 {files} 个使用 PyTorch 的文件中有 {in_state} 个）",
)
TEXTS: Mapping[str, LocalizedText] = {
    "heading": _("NPU readiness", "NPU 就绪度报告"),
    "checked_for": _("Checked for", "检查目标"),
    "made_by": _("Made by", "生成工具"),
    "theme": _("Light or dark", "浅色/深色"),
    "overview": _("Overview", "总览"),
    "ready_headline": _(
        "of the {files} files that use PyTorch run as they are or after safe fixes; {changing} of "
        "them have to change",
        "的文件可直接运行或经安全修复后运行（共 {files} 个使用 PyTorch 的文件，其中 {changing} 个"
        "需要修改）",
    ),
    "files": _("Files", "文件"),
    "file": _("File", "文件"),
    "findings": _("Findings", "问题"),
    "places": _("Places", "出现次数"),
    "effort": _("Effort", "工作量"),
    "effort_to_run": _("until it runs", "迁移至可运行"),
    "effort_advice": _("to follow the advice on speed", "落实性能建议"),
    "effort_note": _(
        "An estimate for one engineer. Tests, training and tuning are not in it.",
        "按一名工程师估算，不含测试、训练和调优。",
    ),
    "formula": _("How the effort is estimated", "工作量如何估算"),
    "formula_sum": _("effort = Σ minutes of each finding", "工作量 = Σ 每个问题的分钟数"),
    "formula_safe": _("with a safe fix: 0 min", "有安全修复：0 分钟"),
    "formula_unsafe": _(
        "with an unsafe fix: {reading} min to read it, {structure} min where it changes the "
        "structure ({rules})",
        "有不安全修复：审阅 {reading} 分钟；涉及结构变化的（{rules}）{structure} 分钟",
    ),
    "formula_manual": _(
        "without a fix: the minutes of its rule ({rules}), or else of its family ({families})",
        "无修复：按规则计（{rules}），其余按规则类别计（{families}）",
    ),
    "formula_again": _(
        "a further finding of the same rule and symbol: a quarter of that, at least 1 min",
        "同一规则、同一符号再次出现：按四分之一计，至少 1 分钟",
    ),
    "formula_judgement": _(
        "The minutes are set by judgement; nobody was timed. A day has 8 hours.",
        "分钟数为经验设定，并非实测。每天按 8 小时计。",
    ),
    "next": _("Next steps", "后续步骤"),
    "next_safe": _(
        "settles {findings} of {total} findings. Files that run from then on: {files}.",
        "可解决 {total} 个问题中的 {findings} 个，之后又有 {files} 个文件可运行。",
    ),
    "next_unsafe": _(
        "makes changes that somebody has to read: {findings}.",
        "提供 {findings} 处修改，需人工审阅。",
    ),
    "next_manual": _(
        "Findings without a fix that keep code from running: {findings}, of which {blockers} need "
        "new code.",
        "{findings} 个影响运行的问题没有自动修复，其中 {blockers} 个需要改写代码。",
    ),
    "next_nothing": _("There is nothing to do before it runs.", "无需任何修改即可运行。"),
    "by_severity": _("By severity", "按级别"),
    "by_fix": _("By fix", "按修复方式"),
    "scripts": _("Scripts", "入口脚本"),
    "scripts_note": _(
        "What somebody starts, judged by all files of the project that it imports.",
        "可直接启动的脚本，按其导入的项目内全部文件判断。",
    ),
    "script": _("Script", "脚本"),
    "blockers": _("Blockers", "阻塞项"),
    "blockers_note": _(
        "What needs new code: errors without a fix and CUDA operators, the most laborious first.",
        "需要编写新代码之处：无法自动修复的错误和 CUDA 算子，工作量大者在前。",
    ),
    "no_blockers": _("Nothing is blocked.", "没有阻塞项。"),
    "families": _("Families", "问题类别"),
    "family": _("Family", "类别"),
    "libraries": _("Libraries", "第三方库"),
    "libraries_note": _(
        "Libraries for GPUs that the project uses, and what takes their place.",
        "项目使用的 GPU 库及其替代方案。",
    ),
    "no_libraries": _("No library for GPUs is used.", "未使用 GPU 专用库。"),
    "library": _("Library", "库"),
    "own_cuda": _("CUDA code of the project", "项目自带的 CUDA 代码"),
    "uses": _("What is used, and what to do", "所用内容及处理办法"),
    "hotspots": _("Dynamic shapes", "动态形状"),
    "hotspots_note": _(
        "Where a shape depends on data or the host waits for the device, ranked by an estimate of "
        "how much that costs (0 to 100).",
        "形状依赖数据或主机等待设备的位置，按预估代价（0 至 100）排序。",
    ),
    "no_hotspots": _("No shape was found that depends on data.", "未发现依赖数据的形状。"),
    "score": _("Score", "得分"),
    "where": _("Where", "位置"),
    "why": _("Why, and what is better", "原因与建议"),
    "better": _("Better: {advice}.", "建议：{advice}。"),
    "shape": _("shape", "形状"),
    "wait": _("wait", "等待"),
    "batch": _("batch", "批次"),
    "reached": _("reached from: {where}", "调用来源：{where}"),
    "fused": _("Fused operators", "融合算子"),
    "fused_note": _(
        "Code that an operator of the NPU could do in one kernel. It runs as it is.",
        "可由 NPU 融合算子以一个内核完成的代码。不改也能运行。",
    ),
    "no_fused": _("No such code was found.", "未发现此类代码。"),
    "settled": _("Settled", "无需处理"),
    "settled_title": _("What needs nothing, and why", "无需处理的位置及原因"),
    "settled_note": _(
        "What belongs to CUDA and stays as it is. npulens explain FILE:LINE says it of one line; "
        "reasons in the configuration has what a reason settles reported all the same.",
        "与 CUDA 有关但可以保持原样的内容。npulens explain FILE:LINE 可说明某一行；在配置的 "
        "reasons 中可让某种原因的位置照样报告。",
    ),
    "nothing_settled": _("There is no such place.", "没有此类位置。"),
    "settled_left_out": _(
        "Only {number} of {total} are listed here: npulens check --explain-silence lists all.",
        "此处只列出 {total} 处中的 {number} 处，可用 npulens check --explain-silence 查看全部。",
    ),
    "reason": _("Reason", "原因"),
    "decided_in": _("line {line}", "第 {line} 行"),
    "folders": _("Folders", "目录"),
    "folder": _("Folder", "目录"),
    "folders_note": _(
        "Bars show how many files are in which state. A click on the figures lists the findings.",
        "色条表示各状态的文件数。点击数字可列出该目录的问题。",
    ),
    "root": _("(all)", "（全部）"),
    "quiet": _("folders without findings: {number}", "另有 {number} 个目录没有问题"),
    "state": _("State", "状态"),
    "severity": _("Severity", "级别"),
    "fix": _("Fix", "修复"),
    "message": _("Message", "说明"),
    "rule": _("Rule", "规则"),
    "place": _("Place", "位置"),
    "to_run": _("Until it runs", "至可运行"),
    "advice": _("Advice", "建议"),
    "search": _("Search", "搜索"),
    "search_hint": _("path, rule, text", "路径、规则、文字"),
    "any": _("all", "全部"),
    "kind": _("Kind", "性质"),
    "kind_work": _("keeps it from running", "影响运行"),
    "kind_advice": _("advice", "建议"),
    "clear": _("Clear filters", "清除筛选"),
    "in_folder": _("below", "目录"),
    "shown": _("{shown} of {total} shown", "显示 {shown} / {total} 条"),
    "more": _("Show {number} more", "再显示 {number} 条"),
    "all": _("Show all {number}", "显示全部 {number} 条"),
    "none": _("Nothing fits.", "没有符合条件的条目。"),
    "left_out": _(
        "Only {number} of {total} are listed here: npulens check lists all.",
        "此处只列出 {total} 条中的 {number} 条，可用 npulens check 查看全部。",
    ),
    "first_only": _(
        "Only the first {number} of {total} are shown here; all are among the findings.",
        "此处只显示 {total} 条中的前 {number} 条，全部内容见“问题”列表。",
    ),
    "unread": _("Not read", "未读取"),
    "not_checked": _("Not checked", "未检查"),
    "needs_script": _(
        "The lists of files and findings need JavaScript.", "文件和问题列表需要启用 JavaScript。"
    ),
    "further": _("and {number} more", "另有 {number} 处"),
    "skip": _("Sections", "章节"),
}


def text(key: str, language: Language, **values: object) -> str:
    """A text with its values put in."""
    return TEXTS[key].in_language(language).format(**values)


def family_name(family: str, language: Language) -> str:
    """What a family is called."""
    named = FAMILIES.get(family)
    return family if named is None else named.in_language(language)


def duration(minutes: int, language: Language) -> str:
    """Working time as people say it; a day has 8 hours."""
    hours = minutes / 60
    if minutes < 60:
        return f"{minutes} 分钟" if language == "zh" else f"{minutes} min"
    if hours < 16:
        return f"{_rounded(hours)} 小时" if language == "zh" else f"{_rounded(hours)} h"
    days = _rounded(hours / 8)
    return f"{days} 天" if language == "zh" else f"{days} days"


def _rounded(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def script_state(script: ScriptRow, language: Language) -> str:
    """The state of a script, and how many of the files that it reaches are in it."""
    return _SCRIPT_STATE.in_language(language).format(
        state=STATES[script.readiness].in_language(language),
        in_state=f"{script.in_state:,}",
        files=f"{script.files:,}",
    )


def percent(part: int, whole: int) -> str:
    """A share without decimals, of which neither 0 % nor 100 % is said unless it is true."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1%"
    if 99 < share < 100:
        return ">99%"
    return f"{share:.0f}%"

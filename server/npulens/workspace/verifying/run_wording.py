"""What a verification says, in each language."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from npulens.catalog.model import Language, LocalizedText
from npulens.workspace.verifying.agreement import Agreement
from npulens.workspace.verifying.npu_apis import FAILS, FALLS_BACK, MAY_FALL_BACK
from npulens.workspace.verifying.outcomes import Outcome, Verdict
from npulens.workspace.verifying.unreached import Unreached

VERDICTS: Mapping[Outcome, LocalizedText] = {
    Outcome.PASSED: LocalizedText(
        "passed: ran to its end with {steps} optimizer steps on the emulated NPU, no CUDA call was "
        "reached",
        "通过：在模拟 NPU 上运行结束，完成 {steps} 个优化步，未执行到任何 CUDA 调用",
    ),
    Outcome.LIMIT_REACHED: LocalizedText(
        "limit reached: {steps} optimizer steps on the emulated NPU until the limit that you gave"
        "{where}, no CUDA call was reached",
        "达到设定的上限：在模拟 NPU 上完成 {steps} 个优化步{where}，未执行到任何 CUDA 调用",
    ),
    Outcome.STEP_LIMIT: LocalizedText(
        "cut: ended after {steps} optimizer steps on the emulated NPU{where}, no CUDA call was "
        "reached until then; nothing is known of the rest",
        "未运行完：在模拟 NPU 上完成 {steps} 个优化步后停止{where}，在此之前未执行到任何 CUDA "
        "调用；其余部分未知",
    ),
    Outcome.RAN: LocalizedText(
        "passed: ran to its end on the emulated NPU without an optimizer step",
        "通过：在模拟 NPU 上运行结束，没有执行优化步",
    ),
    Outcome.TESTS_PASSED: LocalizedText(
        "passed: {detail} tests on the emulated NPU, no CUDA call was reached",
        "通过：{detail} 个测试在模拟 NPU 上通过，未执行到任何 CUDA 调用",
    ),
    Outcome.CUDA_LEFT: LocalizedText(
        "not ready: calls {detail}{where}", "未完成迁移：仍调用 {detail}{where}"
    ),
    Outcome.ON_CPU: LocalizedText(
        "not ready: {detail} of the trained parameters stayed on the CPU",
        "未完成迁移：{detail} 的训练参数留在 CPU 上",
    ),
    Outcome.WITHOUT_NPU: LocalizedText(
        "not ready: nothing was computed on the NPU", "未完成迁移：没有任何计算在 NPU 上执行"
    ),
    Outcome.UNSUPPORTED: LocalizedText(
        "not ready: uses {detail}, which the NPU does not have{where}",
        "未完成迁移：使用了 NPU 不支持的 {detail}{where}",
    ),
    Outcome.DIVERGED: LocalizedText(
        "not ready: the migrated script does not compute what the original does",
        "未完成迁移：迁移后的脚本与原脚本的计算结果不一致",
    ),
    Outcome.CUDA_NEEDED: LocalizedText(
        "not ready: needs CUDA{where}: {detail}", "未完成迁移：需要 CUDA{where}：{detail}"
    ),
    Outcome.UNKNOWN_NAME: LocalizedText(
        "not ready: there is no {detail}{where}", "未完成迁移：不存在 {detail}{where}"
    ),
    Outcome.TESTS_FAILED: LocalizedText(
        "not ready: {detail} tests failed, the first{where}",
        "未完成迁移：{detail} 个测试失败，第一个失败位置{where}",
    ),
    Outcome.ERROR: LocalizedText(
        "not ready: stopped{where}: {detail}", "未完成迁移：运行中止{where}：{detail}"
    ),
    Outcome.NOT_EMULATED: LocalizedText(
        "not emulated: {detail}{where}; npulens' emulator lacks this, which says nothing about the "
        "NPU",
        "模拟器未实现{where}：{detail}；这是 npulens 模拟器的不足，不代表 NPU 不支持",
    ),
    Outcome.EMULATOR_FAILED: LocalizedText(
        "not emulated: npulens' emulator itself failed{where}, which says nothing about the NPU: "
        "{detail}",
        "npulens 模拟器自身出错{where}，不代表 NPU 不支持：{detail}",
    ),
    Outcome.NEEDS_MODULE: LocalizedText("needs {detail}{where}", "需要模块 {detail}{where}"),
    Outcome.NEEDS_FILE: LocalizedText("needs the file {detail}{where}", "需要文件 {detail}{where}"),
    Outcome.NEEDS_OPERATOR: LocalizedText(
        "needs the operator {detail} of a compiled extension{where}",
        "需要编译扩展提供的算子 {detail}{where}",
    ),
    Outcome.NEEDS_NETWORK: LocalizedText(
        "needs the network{where}: {detail}", "需要访问网络{where}：{detail}"
    ),
    Outcome.NEEDS_VARIABLE: LocalizedText(
        "needs the environment variable {detail}{where}",
        "需要环境变量 {detail}{where}",
    ),
    Outcome.NEEDS_ARGUMENTS: LocalizedText(
        "needs other arguments{where}: {detail}", "需要其他命令行参数{where}：{detail}"
    ),
    Outcome.NEEDS_LAUNCHER: LocalizedText(
        "needs a launcher: is meant to be started by a launcher{where}; give --processes 1 or more",
        "需要启动器：脚本应由启动器启动{where}；请加 --processes 1 或更多",
    ),
    Outcome.NEEDS_INPUT: LocalizedText(
        "needs input: reads standard input, which is empty here{where}",
        "需要读取标准输入，而此处没有输入{where}",
    ),
    Outcome.NO_TESTS: LocalizedText(
        "needs tests: no test was selected", "需要测试：没有选中任何测试"
    ),
    Outcome.EXITED: LocalizedText(
        "stopped: ended itself with exit code {detail}{where}",
        "已停止：脚本以退出码 {detail} 自行结束{where}",
    ),
    Outcome.TIME_LIMIT: LocalizedText(
        "cut: the time limit of {detail} was reached after {steps} optimizer steps{where}; nothing "
        "is known of the rest",
        "未运行完：达到时间上限 {detail}，已完成 {steps} 个优化步{where}；其余部分未知",
    ),
    Outcome.MEMORY_LIMIT: LocalizedText(
        "stopped: the memory limit was reached{where}: {detail}",
        "已停止：达到内存上限{where}：{detail}",
    ),
    Outcome.CRASHED: LocalizedText(
        "stopped: a process was ended by {detail}", "已停止：进程被信号 {detail} 终止"
    ),
}
"""`{where}` is empty or ` at train.py:41`."""

WAYS: Mapping[Outcome, LocalizedText] = {
    Outcome.STEP_LIMIT: LocalizedText(
        "--steps 0 runs it to its end, --steps N further.",
        "--steps 0 运行到结束，--steps N 运行更多步。",
    ),
    Outcome.TIME_LIMIT: LocalizedText(
        "--seconds gives it more time; fewer data or epochs end it sooner.",
        "可用 --seconds 给予更多时间，或减少数据和轮数。",
    ),
    Outcome.NEEDS_MODULE: LocalizedText(
        "Install what brings it for the Python that runs npulens (`{python} -m pip install ...`).",
        "请为运行 npulens 的 Python 安装提供它的软件包（`{python} -m pip install ...`）。",
    ),
    Outcome.NEEDS_FILE: LocalizedText(
        "Put it below the folder that npulens is started in, which is copied, or give the script "
        "its absolute path. What lies beside that folder is not copied: start in a folder above, "
        "or use --here.",
        "请把它放在启动 npulens 的文件夹内（该文件夹会被复制），或向脚本提供绝对路径。"
        "文件夹以外的内容不会被复制：请在上级文件夹启动，或使用 --here。",
    ),
    Outcome.NEEDS_OPERATOR: LocalizedText(
        "A kernel for CUDA does not run on the NPU: the operator has to be ported, or replaced by "
        "others.",
        "CUDA 核函数不能在 NPU 上运行：需要移植该算子，或改用其他算子。",
    ),
    Outcome.NEEDS_NETWORK: LocalizedText(
        "Download the data or weights before, and let the script read the files.",
        "请先下载数据或权重，再让脚本读取这些文件。",
    ),
    Outcome.NEEDS_VARIABLE: LocalizedText(
        "Set it before: {detail}=... npulens verify ...",
        "请先设置：{detail}=... npulens verify ...",
    ),
    Outcome.NEEDS_ARGUMENTS: LocalizedText(
        "Arguments of the script stand behind `--`: npulens verify train.py -- --data DIR",
        "脚本的参数写在 `--` 之后：npulens verify train.py -- --data DIR",
    ),
    Outcome.NEEDS_INPUT: LocalizedText(
        "Let the script take this from an argument or a file.",
        "请让脚本从参数或文件中获取该输入。",
    ),
    Outcome.NO_TESTS: LocalizedText(
        "Name tests behind `--`: npulens verify -m pytest -- tests/test_model.py",
        "请在 `--` 之后指定测试：npulens verify -m pytest -- tests/test_model.py",
    ),
}
"""What to do so that more can be said."""
UNREACHED = LocalizedText("Not reached in {script}: {parts}", "{script} 中未执行到：{parts}")
LINES = LocalizedText("lines {first} to {last}", "第 {first} 至 {last} 行")
ONE_LINE = LocalizedText("line {first}", "第 {first} 行")
FUNCTION = LocalizedText("{name} ({lines})", "{name}（{lines}）")
MORE = LocalizedText("{count} more", "另有 {count} 处")
ALL_REACHED = LocalizedText("Every line of {script} was reached.", "{script} 的每一行都已执行到。")
_SHOWN_PARTS = 10

WHERE = LocalizedText(" at {place}", "（{place}）")
FIXED = LocalizedText("{count} findings were fixed in the copy", "已在副本中修复 {count} 个问题")
CUDA_CALLS = LocalizedText("CUDA calls reached:", "执行到的 CUDA 调用：")
APIS = LocalizedText(
    "APIs that the NPU lacks or leaves to the host:", "NPU 不支持或回退到主机的 API："
)
EVENTS = LocalizedText(
    "Shapes that depended on data, and waits of the host:", "依赖数据的形状与主机等待："
)
KINDS: Mapping[str, LocalizedText] = {
    "shape": LocalizedText("shape", "形状"),
    "wait": LocalizedText("wait", "等待"),
    FAILS: LocalizedText("not on the NPU", "NPU 不支持"),
    FALLS_BACK: LocalizedText("computed on the host", "在主机上计算"),
    MAY_FALL_BACK: LocalizedText("may be computed on the host", "可能在主机上计算"),
    "": LocalizedText("", ""),
}
COMPARED = LocalizedText(
    "Original on the CPU: {losses} losses and the parameters after {steps} steps agree; "
    "the largest difference of losses is {largest:.2g}",
    "与 CPU 上的原脚本比较：{losses} 个损失值和 {steps} 步的参数一致；损失最大相差 {largest:.2g}",
)
DIVERGED: Mapping[str, LocalizedText] = {
    "loss": LocalizedText(
        "Original on the CPU: loss {step} is {original:.6g} and, migrated, {migrated:.6g}",
        "与 CPU 上的原脚本比较：第 {step} 个损失值原为 {original:.6g}，迁移后为 {migrated:.6g}",
    ),
    "parameter": LocalizedText(
        "Original on the CPU: after step {step} the norm of parameter {parameter} is "
        "{original:.6g} and, migrated, {migrated:.6g}",
        "与 CPU 上的原脚本比较：第 {step} 步后，第 {parameter} 个参数的范数原为 {original:.6g}，"
        "迁移后为 {migrated:.6g}",
    ),
    "count": LocalizedText(
        "Original on the CPU: there are {original:.0f} values at step {step} and, migrated, "
        "{migrated:.0f}",
        "与 CPU 上的原脚本比较：第 {step} 步原有 {original:.0f} 个值，迁移后有 {migrated:.0f} 个",
    ),
}
NOT_COMPARED = LocalizedText(
    "The original could not be compared, as it does not train on the CPU: {problem}",
    "无法比较：原脚本不能在 CPU 上训练：{problem}",
)
AGREEMENT = LocalizedText("Findings beside what was seen:", "静态结果与运行结果对照：")
AGREEMENTS: Mapping[Agreement, LocalizedText] = {
    Agreement.CONFIRMED: LocalizedText("confirmed", "已证实"),
    Agreement.NOT_SEEN: LocalizedText("not seen", "未观察到"),
    Agreement.MISSED: LocalizedText("missed", "漏报"),
}
FAILED_TESTS = LocalizedText("Failed tests:", "失败的测试：")
OUTPUT = LocalizedText("Its last lines:", "脚本最后的输出：")


def shown_place(path: str, line: int | None, cell: int | None) -> str:
    """A line as `npulens check` names it: `train.py:12`, or `train.ipynb:cell 3:12`."""
    return f"{path}:{line}" if cell is None else f"{path}:cell {cell}:{line}"


def verdict_sentence(verdict: Verdict, steps: int, language: Language, *, placed: bool) -> str:
    """The verdict in one sentence.

    Args:
        verdict: The verdict.
        steps: How many optimizer steps were made.
        language: The language.
        placed: Whether the sentence names the place, if there is one.
    """
    where = ""
    if placed and verdict.path is not None:
        place = shown_place(verdict.path, verdict.line, verdict.cell)
        where = WHERE.in_language(language).format(place=place)
    detail = verdict.detail.partition("\n")[0]
    template = VERDICTS[verdict.outcome].in_language(language)
    return template.format(steps=steps, detail=detail, where=where)


def way_on(verdict: Verdict, language: Language) -> str | None:
    """What to do so that a run says more, in one sentence; `None` if there is nothing to add."""
    template = WAYS.get(verdict.outcome)
    if template is None:
        return None
    python = Path(sys.executable).name
    return template.in_language(language).format(detail=verdict.detail, python=python)


def unreached_sentence(script: str, parts: Sequence[Unreached], language: Language) -> str:
    """Which functions and lines of a script were not reached."""
    if not parts:
        return ALL_REACHED.in_language(language).format(script=script)
    told = [_part(each, language) for each in parts[:_SHOWN_PARTS]]
    if len(parts) > _SHOWN_PARTS:
        told.append(MORE.in_language(language).format(count=len(parts) - _SHOWN_PARTS))
    return UNREACHED.in_language(language).format(script=script, parts=", ".join(told))


def _part(part: Unreached, language: Language) -> str:
    template = ONE_LINE if part.line == part.end_line else LINES
    lines = template.in_language(language).format(first=part.line, last=part.end_line)
    if not part.function:
        return lines
    return FUNCTION.in_language(language).format(name=part.function, lines=lines)

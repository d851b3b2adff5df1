"""What a verification says, in each language."""

from collections.abc import Mapping

from npulens.catalog.model import Language, LocalizedText
from npulens.workspace.verifying.agreement import Agreement
from npulens.workspace.verifying.npu_apis import FAILS, FALLS_BACK, MAY_FALL_BACK
from npulens.workspace.verifying.outcomes import Outcome, Verdict

VERDICTS: Mapping[Outcome, LocalizedText] = {
    Outcome.PASSED: LocalizedText(
        "passed: {steps} optimizer steps on the emulated NPU, no CUDA call was reached",
        "通过：在模拟 NPU 上完成 {steps} 个优化步，未执行到任何 CUDA 调用",
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
        "stopped: {detail}{where}; this says nothing about the NPU",
        "已停止：模拟器未实现{where}：{detail}；不代表 NPU 不支持",
    ),
    Outcome.NEEDS_MODULE: LocalizedText(
        "stopped: needs {detail}{where}", "已停止：需要模块 {detail}{where}"
    ),
    Outcome.NEEDS_FILE: LocalizedText(
        "stopped: needs the file {detail}{where}", "已停止：需要文件 {detail}{where}"
    ),
    Outcome.NEEDS_OPERATOR: LocalizedText(
        "stopped: needs the operator {detail} of a compiled extension{where}",
        "已停止：需要编译扩展提供的算子 {detail}{where}",
    ),
    Outcome.NEEDS_NETWORK: LocalizedText(
        "stopped: needs the network{where}: {detail}", "已停止：需要访问网络{where}：{detail}"
    ),
    Outcome.NEEDS_VARIABLE: LocalizedText(
        "stopped: needs the environment variable {detail}{where}",
        "已停止：需要环境变量 {detail}{where}",
    ),
    Outcome.NEEDS_ARGUMENTS: LocalizedText(
        "stopped: needs other arguments{where}: {detail}", "已停止：命令行参数不对{where}：{detail}"
    ),
    Outcome.NEEDS_LAUNCHER: LocalizedText(
        "stopped: is meant to be started by a launcher{where}; give --processes 1 or more",
        "已停止：脚本需要由启动器启动{where}；请加 --processes 1 或更多",
    ),
    Outcome.NEEDS_INPUT: LocalizedText(
        "stopped: reads standard input, which is empty here{where}",
        "已停止：需要读取标准输入，而此处没有输入{where}",
    ),
    Outcome.NO_TESTS: LocalizedText("stopped: no test was selected", "已停止：没有选中任何测试"),
    Outcome.EXITED: LocalizedText(
        "stopped: ended itself with exit code {detail}{where}",
        "已停止：脚本以退出码 {detail} 自行结束{where}",
    ),
    Outcome.TIME_LIMIT: LocalizedText(
        "stopped: the time limit was reached after {steps} optimizer steps{where}",
        "已停止：达到时间上限，已完成 {steps} 个优化步{where}",
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

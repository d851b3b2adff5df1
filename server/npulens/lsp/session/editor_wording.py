"""What the server says around findings, in each language."""

from npulens.catalog.model import LocalizedText

FIX_ALL = LocalizedText("Apply all safe fixes of npulens", "应用 npulens 的全部安全修复")
FIX_ALL_OF_RULE = LocalizedText("Fix all {code} in this file", "修复本文件中所有 {code}")
NO_FIX = LocalizedText("No fix for {code}", "{code} 无法自动修复")
BY_HAND = LocalizedText(
    "No edit does this for certain, so it is left to you. {message}",
    "没有可靠的自动修改方式，需要手动处理。{message}",
)
SUPPRESS_ON_LINE = LocalizedText("Suppress {code} on this line", "在本行屏蔽 {code}")
SUPPRESS_IN_FILE = LocalizedText("Suppress {code} in this file", "在本文件中屏蔽 {code}")
EXPLAIN = LocalizedText("Explain {code}", "解释 {code}")
AGNOSTIC_STYLE = LocalizedText(
    "Rewrite this file in device-agnostic style", "将本文件改写为与设备无关的写法"
)
UNSAFE = LocalizedText("{title} (unsafe: review the result)", "{title}（不安全：请检查修改结果）")
NEEDED_IMPORT = LocalizedText(
    "import that the other changes of this file need", "本文件其他修改所需的导入"
)

SETTLED = LocalizedText("Nothing to be done:", "无需处理：")
ON_THE_NPU = LocalizedText("On the NPU: `{name}`", "在 NPU 上使用：`{name}`")
NO_COUNTERPART = LocalizedText("There is no counterpart on the NPU.", "NPU 上没有对应接口。")
AGNOSTIC_NAME = LocalizedText("For any device: `{name}`", "与设备无关的写法：`{name}`")
SINCE = LocalizedText("Since torch_npu {version}.", "自 torch_npu {version} 起提供。")
REPLACES = LocalizedText("On the NPU, in place of {names}", "在 NPU 上替代 {names}")
SHIMMED = LocalizedText(
    "`transfer_to_npu` makes it work as it is.", "导入 `transfer_to_npu` 后可直接使用。"
)
SOURCE = LocalizedText("Source: {source}", "来源：{source}")
ON_NPU = LocalizedText("on the NPU", "NPU 支持情况")
SUPPORTED = LocalizedText("supported", "支持")
UNSUPPORTED = LocalizedText("not supported", "不支持")
LIMITED = LocalizedText("supported with limits", "支持，但有限制")
NOT_LISTED = LocalizedText("not in the support table", "不在支持列表中")

STATE = LocalizedText("npulens: {state}", "npulens：{state}")
PROBLEM = LocalizedText("{number} problem", "{number} 个问题")
PROBLEMS = LocalizedText("{number} problems", "{number} 个问题")
SAFE_TO_FIX = LocalizedText("{number} safe to fix", "{number} 个可安全修复")
ADVICE = LocalizedText("advice: {number}", "{number} 条建议")
MIGRATED = LocalizedText("npulens: no problems", "npulens：未发现问题")
MIGRATE_FILE = LocalizedText("Migrate this file to the NPU", "将本文件迁移到 NPU")
MIGRATE_WORKSPACE = LocalizedText("Migrate the workspace to the NPU", "将工作区迁移到 NPU")
LEFT_OUT = LocalizedText(
    "Left as they are, since an editor would not keep their encoding or line endings: {files}. "
    "`npulens fix` keeps them.",
    "以下文件未修改，因为编辑器无法保持其编码或换行符：{files}。`npulens fix` 可以保持。",
)
WRITE_REPORT = LocalizedText("Write a report of npulens", "写入 npulens 报告")
RUN_TIME_MIGRATION = LocalizedText("Migration at run time", "运行时迁移")
CHECK_WORKSPACE = LocalizedText("Checking the workspace", "检查工作区")
RESTART_INDEX = LocalizedText("Read the workspace again", "重新读取工作区")

DYNAMIC = LocalizedText("dynamic", "动态")
SYMBOLIC_SHAPE = LocalizedText(
    "Symbolic shape, as far as the code tells it: names and numbers are sizes, `?` is a size that "
    "cannot be told, `...` any number of dimensions.",
    "从代码中推断的符号形状：名称和数字表示大小，`?` 表示无法确定的大小，`...` 表示任意多个维度。",
)
DEPENDS_ON_DATA = LocalizedText(
    "It depends on data, and changes from step to step:", "该形状依赖数据，每一步都可能不同："
)
DYNAMIC_SHAPE = LocalizedText("Dynamic shape", "动态形状")
HOST_SYNC = LocalizedText("The host waits for the device", "主机等待设备")
BATCH_SIZE = LocalizedText("Batches of different size", "批次大小不固定")
SCORE = LocalizedText(", score {score} of 100", "，得分 {score}/100")
TRAINING = LocalizedText(", in the training step", "，位于训练步骤中")
COLD = LocalizedText(", outside of training", "，位于训练之外")
SHAPE_HERE = LocalizedText("makes a shape depend on data", "使形状依赖数据")
WAITS_HERE = LocalizedText("makes the host wait", "使主机等待")
BOTH_HERE = LocalizedText(
    "makes a shape depend on data, and the host wait", "使形状依赖数据，并使主机等待"
)
SIZE_HERE = LocalizedText("decides the size of batches", "决定批次大小")
HAS_SHAPE = LocalizedText("has the shape", "的形状为")
WORKS_ON_IT = LocalizedText("works on it", "在其上计算")
IN_LINE = LocalizedText("line {line}: {code}", "第 {line} 行：{code}")
IN_CELL = LocalizedText(
    "cell {cell}, line {line}: {code}", "第 {cell} 个单元格第 {line} 行：{code}"
)
ONE_SHAPE = LocalizedText("1 dynamic shape", "1 个动态形状")
SHAPES = LocalizedText("{number} dynamic shapes", "{number} 个动态形状")
ONE_SYNC = LocalizedText("1 sync", "1 次同步")
SYNCS = LocalizedText("{number} syncs", "{number} 次同步")
IN_TRAINING = LocalizedText(
    "npulens: {counts} in the training step", "npulens：训练步骤中有 {counts}"
)
BESIDES_TRAINING = LocalizedText(
    "npulens: {counts} outside of training", "npulens：训练之外有 {counts}"
)
COUNTED = LocalizedText("npulens: {counts}", "npulens：{counts}")
RANK_SHAPES = LocalizedText("Rank dynamic shapes", "按影响排列动态形状")
NO_SHAPES = LocalizedText("npulens: no shape depends on data", "npulens：没有依赖数据的形状")
ONE_RANKED = LocalizedText(
    "npulens: 1 place where a shape depends on data or the host waits",
    "npulens：1 处形状依赖数据或主机等待设备",
)
RANKED = LocalizedText(
    "npulens: {number} places where shapes depend on data or the host waits, the worst first",
    "npulens：{number} 处形状依赖数据或主机等待设备，影响最大的在前",
)

VERIFY = LocalizedText(
    "Running {name} on an emulated NPU (this executes its code)",
    "在模拟 NPU 上运行 {name}（会执行其中的代码）",
)
RUN_CUDA_CALL = LocalizedText(
    "Seen in the run: `{name}` was called, {count}x.", "运行中观察到：调用了 `{name}`，{count} 次。"
)
RUN_PROBE = LocalizedText(
    "Seen in the run: `{name}` was asked, {count}x; the answer was no.",
    "运行中观察到：查询了 `{name}`，{count} 次，结果为否。",
)
RUN_API = LocalizedText(
    "Seen in the run: `{name}` was called, {count}x; {kind}.",
    "运行中观察到：调用了 `{name}`，{count} 次；{kind}。",
)
RUN_SHAPE = LocalizedText(
    "Seen in the run: the shape of a result depended on data in `{name}`, {count}x.",
    "运行中观察到：`{name}` 的结果形状依赖数据，{count} 次。",
)
RUN_WAIT = LocalizedText(
    "Seen in the run: the host waited for the device in `{name}`, {count}x.",
    "运行中观察到：主机在 `{name}` 处等待设备，{count} 次。",
)

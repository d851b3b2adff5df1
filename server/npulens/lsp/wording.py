"""What the server says around findings, in each language."""

from npulens.catalog.model import LocalizedText

FIX_ALL = LocalizedText("Apply all safe fixes of npulens", "应用 npulens 的全部安全修复")
FIX_ALL_OF_RULE = LocalizedText("Fix all {code} in this file", "修复本文件中所有 {code}")
NO_FIX = LocalizedText("No fix for {code}", "{code} 无法自动修复")
SUPPRESS_ON_LINE = LocalizedText("Suppress {code} on this line", "在本行屏蔽 {code}")
SUPPRESS_IN_FILE = LocalizedText("Suppress {code} in this file", "在本文件中屏蔽 {code}")
EXPLAIN = LocalizedText("Explain {code}", "解释 {code}")
AGNOSTIC_STYLE = LocalizedText(
    "Rewrite this file in device-agnostic style", "将本文件改写为与设备无关的写法"
)
TO_BE_READ = LocalizedText(
    "npulens: results may differ, please read these changes",
    "npulens：结果可能不同，请确认这些修改",
)

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

TO_MIGRATE = LocalizedText(
    "npulens: {todo} to migrate ({safe} with safe fixes), {advice} to know",
    "npulens：待迁移 {todo} 处（{safe} 处可安全修复），另有 {advice} 条建议",
)
ONLY_ADVICE = LocalizedText(
    "npulens: nothing to migrate, {advice} to know", "npulens：无需迁移，有 {advice} 条建议"
)
MIGRATED = LocalizedText("npulens: nothing to migrate", "npulens：无需迁移")
MIGRATE_FILE = LocalizedText("Migrate this file to the NPU", "将本文件迁移到 NPU")
MIGRATE_WORKSPACE = LocalizedText("Migrate the workspace to the NPU", "将工作区迁移到 NPU")
WRITE_REPORT = LocalizedText("Write a report of npulens", "写入 npulens 报告")
RESTART_INDEX = LocalizedText("Read the workspace again", "重新读取工作区")
PREVIEW = LocalizedText(
    "npulens: migration to the NPU, please look through", "npulens：迁移到 NPU，请检查"
)

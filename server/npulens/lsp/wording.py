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

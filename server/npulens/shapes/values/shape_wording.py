"""What is better than the places found, where no table says it."""

from npulens.catalog.model import LocalizedText

KEEP_SHAPE = LocalizedText(
    "`torch.where` or a weighted sum over the full shape",
    "在完整形状上使用 `torch.where` 或加权求和",
)
FILL = LocalizedText("`masked_fill_` or `torch.where`", "`masked_fill_` 或 `torch.where`")
SCATTER = LocalizedText("`masked_scatter_` or `torch.where`", "`masked_scatter_` 或 `torch.where`")
FIXED_SIZE = LocalizedText(
    "a size that the configuration sets, with a mask", "配置给定的固定大小并配合掩码"
)
STAY = LocalizedText(
    "values that stay on the device; read them every so many steps",
    "让数值留在设备上，每隔若干步再读取",
)
DECIDE_ON_DEVICE = LocalizedText(
    "`torch.where` or a factor computed on the device", "`torch.where` 或在设备上计算的系数"
)
LEAVE_OUT = LocalizedText(
    "no check of values in every step: leave it out, or check every so many steps",
    "不在每一步都检查数值：去掉该检查，或每隔若干步检查一次",
)
GATHER = LocalizedText(
    "`index_select` or `gather` with a tensor of one element",
    "用单元素张量调用 `index_select` 或 `gather`",
)
HOST_NUMBERS = LocalizedText(
    "numbers that stay on the host, where they come from", "直接使用主机侧原有的数值"
)
CONTAINED = LocalizedText("`(x == value).any()`", "`(x == value).any()`")
DROP_LAST = LocalizedText("`drop_last=True`", "`drop_last=True`")
FIXED_LENGTH = LocalizedText(
    "one fixed length, or a multiple of some number", "固定长度，或某个数的整数倍"
)
PREALLOCATE = LocalizedText(
    "memory of the full length (a static cache), or a list that is joined once",
    "按完整长度预先分配（静态缓存），或收集到列表后一次性拼接",
)
FEW_SIZES = LocalizedText("a few fixed sizes", "少数几种固定尺寸")

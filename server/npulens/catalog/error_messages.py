"""What is said on standard error and of files that cannot be read, in Chinese.

Below the faces a failure is one English sentence, or a part of one. Here each has its translation;
`tests/test_complaints.py` sees that none is missing. Numbers in braces stand for what differs.
"""

# ruff: noqa: E501 (a sentence and its translation stand in one line)

import re
from collections.abc import Iterator
from functools import cache

from npulens.catalog.model import Language

_LONGEST = 1000
"""In characters; no sentence of npulens is longer."""

_SENTENCES = """
stopped: {0}|已停止：{0}
internal error ({0}), please report it|内部错误（{0}），请反馈
cannot be read: {0}|无法读取：{0}
cannot be written: {0}|无法写入：{0}
cannot be copied: {0}|无法复制：{0}
cannot be made: there is no folder {0}|无法创建：目录 {0} 不存在
its fixes still change it after {0} passes|{0} 轮修复后仍有改动
files still change after {0} rounds|{0} 轮之后文件仍在变化
not suppressed: it takes no comments; use per-file-ignores or a baseline|未抑制：此类文件不支持注释；请使用 per-file-ignores 或基线
not fixed: {0}|未修复：{0}
left out: {0}|已略过：{0}
no such file|文件不存在
no such folder|目录不存在
there is no such folder|目录不存在
is no folder|不是目录
no [tool.npulens] in it|其中没有 [tool.npulens]
No such file or directory|文件或目录不存在
Permission denied|权限不足
No space left on device|磁盘空间不足
Read-only file system|文件系统只读
File too large|文件过大
Is a directory|是一个目录
Not a directory|不是目录
Input/output error|输入输出错误
File name too long|文件名过长
Too many levels of symbolic links|符号链接层数过多
Disk quota exceeded|超出磁盘配额
Broken pipe|管道已断开
Address already in use|地址已被占用
standard input is closed|标准输入已关闭
standard input and paths cannot be checked at once|不能同时检查标准输入和路径
standard input can be neither changed nor watched|标准输入既不能修改，也不能监视
--fix and --add-suppressions exclude each other|--fix 与 --add-suppressions 不能同时使用
--watch changes no files|--watch 不修改文件
--as-library writes a rule file and nothing else|--as-library 只生成规则文件，不能与这些选项同时使用
--as-library needs one folder: the package, or its project|--as-library 需要一个目录：软件包或其所在项目
--unsafe-fixes needs --fix|--unsafe-fixes 需要与 --fix 同时使用
--allow-dirty needs --fix or --add-suppressions|--allow-dirty 需要与 --fix 或 --add-suppressions 同时使用
--allow-dirty needs --in-place|--allow-dirty 需要与 --in-place 同时使用
"{0}" names no line; write FILE:LINE, such as train.py:42|“{0}”没有指明行；请写作 FILE:LINE，例如 train.py:42
{0} has no line {1}|{0} 没有第 {1} 行
cannot be checked|无法检查
--explain-silence lists places, and --statistics has none|--explain-silence 列出具体位置，而 --statistics 不含位置
--explain-silence lists what is no problem, and {0} knows only problems|--explain-silence 列出的不是问题，而 {0} 格式只能表示问题
--statistics are for people or JSON|--statistics 只支持 human 和 json 格式
either -o DST or --in-place says where the migrated files go|请用 -o DST 或 --in-place 之一指定迁移后文件的位置
--distributed and --entry belong together|--distributed 与 --entry 必须同时使用
there is no rule "{0}"; did you mean "{1}"?|没有规则“{0}”；是否想输入“{1}”？
there is no rule "{0}"|没有规则“{0}”
there is no reason "{0}"; did you mean "{1}"?|没有原因“{0}”；是否想输入“{1}”？
there is no reason "{0}"|没有原因“{0}”
"{0}" cannot be overruled; select the rule instead|不能改变原因“{0}”；请改为启用该规则
{0} ends neither in .html nor in .md: give --format, too|{0} 既不以 .html 结尾，也不以 .md 结尾：请同时给出 --format
--editor-settings is no JSON: {0}|--editor-settings 不是 JSON：{0}
--editor-settings must be a JSON object|--editor-settings 必须是 JSON 对象
SOURCE_DATE_EPOCH is "{0}", which is no time in seconds|SOURCE_DATE_EPOCH 为“{0}”，不是以秒为单位的时间
there is nothing to run: name a script, or a module with -m|没有可运行的内容：请给出脚本，或用 -m 给出模块
verify needs {0}; there is none beside npulens|verify 需要 {0}；npulens 所在的环境中没有
verify needs {0}; beside npulens there is {1}|verify 需要 {0}；npulens 所在的环境中是 {1}
npulens covers PyTorch {0} to {1}, not {2}|npulens 支持 PyTorch {0} 至 {1}，不支持 {2}
"{0}" is no PyTorch version, such as 2.8|“{0}”不是 PyTorch 版本，版本形如 2.8
--tcp and --websocket cannot be used at once|--tcp 与 --websocket 不能同时使用
--allow-origin needs --websocket|--allow-origin 需要与 --websocket 同时使用
{0} must have {1} characters or more|{0} 至少需要 {1} 个字符
a WebSocket needs the package websockets|WebSocket 需要安装 websockets 包
cannot listen at {0}: {1}|无法监听 {0}：{1}
nothing is fixed: {0}|未做任何修复：{0}
nothing is changed: {0}|未做任何修改：{0}
nothing is migrated: {0}|未做任何迁移：{0}
{0} changed meanwhile; try again|{0} 在此期间发生变化；请重试
{0} has changes that are in no commit; commit them, or give --allow-dirty|{0} 有未提交的修改；请先提交，或使用 --allow-dirty
{0}; --allow-dirty does without git|{0}；使用 --allow-dirty 可以不依赖 git
git cannot be run: {0}|无法运行 git：{0}
git refuses: {0}|git 拒绝执行：{0}
git does not come to an end|git 迟迟没有结束
the .git of {0} is no repository|{0} 中的 .git 不是仓库
the index of {0} cannot be read|无法读取 {0} 的 git 索引
{0} does not say which commit is checked out|无法确定 {0} 当前检出的提交
only a filter, and none is run, could tell whether {0} is committed|{0} 是否已提交只有 git 过滤器能够判断，而 npulens 不运行过滤器
there is no such file in {0}|{0} 中没有这个文件
lies in {0}; name a folder outside of it|位于 {0} 之内；请指定其外的目录
another run is migrating it; wait for that one|另一个进程正在迁移它；请等待其结束
is what is to be migrated; --in-place does that|就是要迁移的目录；就地迁移请用 --in-place
lies in the folder that is to be migrated; name one outside of it|位于要迁移的目录之内；请指定其外的目录
holds the folder that is to be migrated; name one beside it|包含要迁移的目录；请指定与之并列的目录
is a link; name the folder itself|是链接；请指定目录本身
is a file; name a folder that is not there yet|是文件；请指定一个尚不存在的目录
is not empty; name a folder that is not there yet, or remove this one|不为空；请指定一个尚不存在的目录，或删除此目录
is a mount point, which cannot be replaced; name a folder in it|是挂载点，无法替换；请指定其中的目录
is not in git, which could not take it back; --allow-dirty|不在 git 中，修改无法由 git 撤销；可使用 --allow-dirty
is read-only|是只读文件
has further hard links, which would no longer be the same file|另有硬链接，修改后将不再是同一个文件
was changed by somebody else meanwhile|在此期间被其他程序修改
{0} would not give back the same bytes|编码 {0} 无法还原出相同的字节
no Python file in this folder|此目录中没有 Python 文件
no Python file that is not excluded in this folder|此目录中没有未被排除的 Python 文件
no Python file that git does not ignore (respect-gitignore = false takes them) in this folder|此目录中的 Python 文件都被 git 忽略（respect-gitignore = false 时会检查）
neither a file nor a folder; "-" reads standard input|既不是文件也不是目录；“-”表示读取标准输入
it is a pipe, a device or the like|它是管道、设备之类，不是普通文件
it is larger than {0} MB|文件大于 {0} MB
it declares an encoding that Python source cannot have|文件声明了 Python 源码不能使用的编码
byte {0} is not text in its encoding|第 {0} 字节按其编码不是文本
byte {0} is a NUL character|第 {0} 字节是 NUL 字符
it is UTF-16 or UTF-32, which Python source cannot be|文件为 UTF-16 或 UTF-32 编码，Python 源码不能使用该编码
byte {0} is not UTF-8 text|第 {0} 字节不是 UTF-8 文本
line {0} is not valid JSON: {1}|第 {0} 行不是有效的 JSON：{1}
its JSON is nested too deeply|其 JSON 嵌套过深
it is {0}; Jupyter saves notebooks in format {1}|文件为{0}；Jupyter 以第 {1} 版格式保存笔记本
a notebook of format {0}|第 {0} 版格式的笔记本
no notebook|非笔记本文件
it is a notebook for {0}, not for Python|这是 {0} 的笔记本，不是 Python 的
its cell {0} is no cell|第 {0} 个单元格不是单元格
the source of its cell {0} is no text|第 {0} 个单元格的源码不是文本
its cell {0} holds the control character U+001E|第 {0} 个单元格含有控制字符 U+001E
is no text in its encoding|按其编码不是文本
it is no text in its encoding|按其编码不是文本
it is nested too deeply|嵌套过深
line {0} cannot be parsed|第 {0} 行无法解析
is no baseline: not valid JSON|不是基线文件：不是有效的 JSON
is no baseline that this version of npulens can read|不是此版本 npulens 能读取的基线文件
is no baseline: "accepted" must be a table of tables of numbers|不是基线文件：“accepted”必须是由数字表组成的表
tool.npulens must be a table|tool.npulens 必须是表
line {0}: must be UTF-8 text|第 {0} 行：必须是 UTF-8 文本
not valid TOML: line {0}: a key has more than {1} parts|不是有效的 TOML：第 {0} 行：键的层级超过 {1}
not valid TOML: it is nested too deeply|不是有效的 TOML：嵌套过深
not valid TOML: {0}|不是有效的 TOML：{0}
not UTF-8 text|不是 UTF-8 文本
not usable JSON: {0}|不是可用的 JSON：{0}
unknown key "{0}"; did you mean "{1}"?|未知的键“{0}”；是否想输入“{1}”？
unknown key "{0}"|未知的键“{0}”
"{0}" must be a PyTorch version in quotes, such as "2.8"|“{0}”必须是带引号的 PyTorch 版本，如 "2.8"
"{0}" must be a PyTorch version from {1} to {2}|“{0}”必须是 {1} 至 {2} 之间的 PyTorch 版本
"{0}" must be true or false|“{0}”必须是 true 或 false
"{0}" must be a list of texts that are not empty|“{0}”必须是由非空文本组成的列表
"{0}" must be a list of patterns as in .gitignore|“{0}”必须是 .gitignore 写法的模式列表
"{0}" must be a table of patterns, each with a list of rules|“{0}”必须是以模式为键、规则列表为值的表
"{0}" must be a table of reasons, each with a severity|“{0}”必须是以原因为键、严重级别为值的表
"{0}" must be a table of rules, each with a severity|“{0}”必须是以规则为键、严重级别为值的表
"{0}" must be {1}|“{0}”必须是 {1}
no rule files found|没有找到规则文件
{0} must call something of torch_npu, torch or another module|{0} 必须调用 torch_npu、torch 或其他模块中的接口
needs WORDS, a tuple of the words its code is told by|需要 WORDS：用于识别其代码的词组成的元组
BESIDE must be a tuple of these names: {0}|BESIDE 必须是由以下名称组成的元组：{0}
there is no rule {0}|没有规则 {0}
unknown field "{0}"|未知的字段“{0}”
unknown rule {0}|未知的规则 {0}
"{0}" must repeat single characters only, in two places at most: {1}|“{0}”只能重复单个字符，且最多两处：{1}
field "{0}" is missing|缺少字段“{0}”
is there twice|出现了两次
No such option: {0}|没有选项 {0}
No such option '{0}'. ({1})|没有选项 {0}（{1}）
No such option '{0}'. {1}|没有选项 {0}。{1}
No such command '{0}'. {1}|没有命令“{0}”。{1}
No such option '{0}'.|没有选项 {0}
Did you mean one of: {0}?|是否想输入：{0}？
Did you mean {0}?|是否想输入 {0}？
No such command '{0}'.|没有命令“{0}”
Missing argument '{0}'.|缺少参数 {0}
Missing option '{0}'.|缺少选项 {0}
Option '{0}' requires an argument.|选项 {0} 需要一个值
Got unexpected extra argument ({0})|多余的参数：{0}
Got unexpected extra arguments ({0})|多余的参数：{0}
Invalid value for '{0}': {1}|“{0}”的值无效：{1}
Invalid value: {0}|值无效：{0}
{0} is not one of {1}.|{0} 不在可选值 {1} 之中
{0} is not a valid integer range.|{0} 不是有效的整数
{0} is not in the range {1}.|{0} 不在范围 {1} 内
"""


def error_message(sentence: str, language: Language) -> str:
    """A sentence that ends a run, or tells what a file has; English where nobody translated it."""
    if language == "en" or len(sentence) > _LONGEST:
        return sentence
    return _translated(sentence) or sentence


def _translated(sentence: str) -> str | None:
    whole = _translated_alone(sentence)
    if whole is not None:
        return whole
    # What it is about stands in front: "a.py: cannot be read".
    at = sentence.find(": ")
    while at >= 0:
        rest = _translated_alone(sentence[at + 2 :])
        if rest is not None:
            return f"{sentence[:at]}：{rest}"
        at = sentence.find(": ", at + 1)
    return None


def _translated_alone(sentence: str) -> str | None:
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(sentence)
        if found is not None:
            return chinese.format(*(_translated(part) or part for part in found.groups()))
    return None


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(_read(_SENTENCES))


def _read(table: str) -> Iterator[tuple[re.Pattern[str], str]]:
    for line in table.strip().splitlines():
        english, chinese = line.split("|")
        pattern = re.sub(r"\\\{\d\\\}", "(.+)", re.escape(english))
        if english.startswith("{"):  # not what the sentence is about, which stands in front
            pattern = pattern.replace("(.+)", "((?:(?!: ).)+)", 1)
        yield re.compile(pattern, re.DOTALL), chinese

"""What `--help` says, in Chinese.

`tests/test_help.py` sees that nothing is missing.
"""

# ruff: noqa: E501 (a text and its translation stand in one line)

from functools import cache

_TEXTS = """
Find what keeps PyTorch GPU code from running well on Huawei Ascend NPUs.|找出 PyTorch GPU 代码中妨碍其在华为昇腾 NPU 上良好运行的问题。
Show the version and exit.|显示版本并退出。
Show this message and exit.|显示此帮助并退出。
Check the files among PATHS, and below the folders among them.|检查 PATHS 中的文件，以及其中各目录下的文件。
Python files, notebooks, C++ and CUDA sources, shell scripts, Dockerfiles, YAML, JSON, TOML, INI, CMake, make and lists of requirements are read, but for what git ignores.|会读取 Python 文件、笔记本、C++ 与 CUDA 源码、shell 脚本、Dockerfile、YAML、JSON、TOML、INI、CMake、make 和依赖清单；被 git 忽略的文件除外。
Without PATHS the current folder is checked; "-" reads standard input. RULES are codes, names or starts of codes such as NPU1, separated by commas; they replace those of the configuration.|不给出 PATHS 时检查当前目录；“-”表示读取标准输入。RULES 是规则的编号、名称或编号开头（如 NPU1），以逗号分隔；它们会取代配置中的规则。
Check standard input as a file NAME.|把标准输入当作名为 NAME 的文件检查。
For people, programs, spreadsheets, or the services that run checks.|供人阅读，或供程序、电子表格、持续集成服务使用。
Write there, and not to standard output.|写入该文件，而不是标准输出。
Show how often each rule is broken, not where.|显示每条规则的问题数量，而不是位置。
Leave out what matters less.|略去级别更低的问题。
List what belongs to CUDA and needs nothing, too, and why.|同时列出与 CUDA 有关但无需处理的位置及原因。
Say what npulens thinks of one line, and why it is silent where it is.|说明 npulens 对某一行的判断，以及为何不报告。
End with 0 even if something is found.|即使发现问题也以 0 退出。
Leave out what this file accepts.|略去此基线文件已接受的问题。
Accept all there is, in this file.|接受现有的全部问题，并写入此基线文件。
Put comments into the files that accept all there is.|在文件中加入注释，接受现有的全部问题。
Apply safe fixes first, as `npulens fix` does.|先应用安全修复，与 `npulens fix` 相同。
Apply fixes too that have to be read afterwards.|同时应用需要事后审阅的修复。
Fix files even if git could not take that back.|即使 git 无法撤销，也修改文件。
Only these rules.|只使用这些规则。
These rules too.|另外再使用这些规则。
Not these rules.|不使用这些规则。
The configuration, instead of the nearest one.|使用此配置文件，而不是最近的那个。
The PyTorch release to run on, if not what the project requires.|运行所用的 PyTorch 版本；默认取项目要求的版本。
What migrated code looks like.|迁移后代码的风格。
The language of messages.|消息的语言。
List the files and folders that are not read, and why.|列出未读取的文件和目录及原因。
Leave out what is excluded even where it is named.|即使点名给出，也略过被排除的文件。
How many processes to use, if not as many as pay.|使用的进程数；默认按收益自动决定。
Neither read nor write `.npulens_cache`.|既不读取也不写入 `.npulens_cache`。
Write a rule file of what in this library does not run, for those who use it.|把此库中无法运行的部分写成规则文件，供使用者检查。
Check again whenever a file changes.|文件变化时重新检查。
Exit codes: 0 no findings, 1 findings, 2 wrong usage or an error; with --as-library 0 or 2.|退出码：0 没有问题，1 有问题，2 用法有误或出错；使用 --as-library 时为 0 或 2。
Fix the files among PATHS and below, and say what is left to do by hand.|修复 PATHS 中及其下的文件，并列出需要人工处理的问题。
Only safe fixes are applied unless more is asked for: results stay the same and nothing is lost. Without PATHS the current folder is fixed. A git tree with changes that are in no commit is left alone.|除非另行要求，只应用安全修复：计算结果不变，内容不丢失。不给出 PATHS 时修复当前目录。有未提交修改的 git 目录不会被改动。
RULES are codes, names or starts of codes such as NPU1, separated by commas.|RULES 是规则的编号、名称或编号开头（如 NPU1），以逗号分隔。
Change nothing; print a patch for `git apply`.|不修改任何文件；输出可供 `git apply` 使用的补丁。
Exit codes: 0 nothing is left to do (with --diff: to change), 1 something is, 2 wrong usage or an error.|退出码：0 没有剩余问题（使用 --diff 时：没有需要修改之处），1 还有，2 用法有误或出错。
Make a copy of the folder SRC that is migrated to the NPU, or migrate it --in-place.|为目录 SRC 生成迁移到 NPU 的副本，或用 --in-place 就地迁移。
What `npulens fix` does to files is done to all of them; files that npulens does not read are copied. A log tells each edit, and what is left to do by hand with an estimate of the work.|对所有文件执行 `npulens fix` 的修复；npulens 不读取的文件原样复制。日志记录每一处修改，以及需要人工处理的问题和工作量估算。
DST must not be there yet, or be an empty folder: it appears as a whole or not at all.|DST 必须尚不存在，或是空目录：结果要么完整出现，要么完全不出现。
Where the migrated copy shall be.|迁移后副本的位置。
Change SRC itself; git can take that back.|直接修改 SRC；可用 git 撤销。
Let the script --entry train in one process per card.|让 --entry 指定的脚本以每卡一个进程的方式训练。
That script, as seen from SRC.|该脚本，相对于 SRC 的路径。
The variable of it that holds the model.|该脚本中保存模型的变量。
Where the log goes, if not to `npulens-migration` in the migrated tree.|日志的位置；默认为迁移结果中的 `npulens-migration`。
Exit codes: 0 nothing is left to do, 1 something is, 2 wrong usage or an error.|退出码：0 没有剩余问题，1 还有，2 用法有误或出错。
Write what moving the files in PATHS to the NPU takes: how much runs, what is left, where.|写出把 PATHS 中的文件迁移到 NPU 需要的工作：多少可以运行，剩余哪些问题，位于何处。
The page is one file that needs no network; docs/report.md says what its figures mean.|网页是单个文件，无需网络；各项数字的含义见 docs/report.md。
Write there; "-" is standard output.|写入该文件；“-”表示标准输出。
A page or a short text; if not said, by the ending of FILE, else markdown.|网页或简短文本；未指定时取决于 FILE 的后缀，否则为 markdown。
The name of the project, instead of that of its folder.|项目名称；默认为其目录名。
Links open VS Code at the line, on this machine only.|链接在 VS Code 中打开对应的行，仅限本机。
What counts where the configuration says nothing, under the same keys.|配置未作规定时采用的值，键名相同。
Exit codes: 0 written, 2 wrong usage, an error, or files not checked.|退出码：0 已写出，2 用法有误、出错或有文件未检查。
Rank the places in PATHS where shapes depend on data or the host waits for the device.|对 PATHS 中形状依赖数据、或主机等待设备的位置排序。
Also places that `check` does not tell are listed, such as those in evaluation.|`check` 不报告的位置也会列出，例如评估代码中的位置。
A table, one JSON array, or CSV with a heading.|表格、一个 JSON 数组，或带表头的 CSV。
Write to FILE instead of standard output.|写入 FILE，而不是标准输出。
Only so many places, the worst first.|只列出这么多位置，最严重的在前。
Exit codes: 0 done, 2 wrong usage or an error.|退出码：0 完成，2 用法有误或出错。
Migrate a copy of a project and run SCRIPT in it on an NPU emulated on the CPU.|迁移项目的副本，并在 CPU 模拟的 NPU 上运行其中的 SCRIPT。
SCRIPT is a Python file or a notebook. What stands behind `--` is handed to it. Tests are run by pytest, as a module.|SCRIPT 是 Python 文件或笔记本。`--` 之后的内容会传给它。测试通过 pytest 以模块方式运行。
The script is executed, with all rights that you have.|脚本会真正执行，并拥有您的全部权限。
Run a module instead of a script.|运行模块，而不是脚本。
End after so many optimizer steps; 0 for no such limit.|在这么多次优化器步骤之后结束；0 表示不限。
End after so many seconds.|在这么多秒之后结束。
MiB of data a process may have.|每个进程可用的数据内存（MiB）。
Start so many, as torchrun would.|像 torchrun 那样启动这么多进程。
Do not migrate first; it is migrated already.|不先迁移；项目已经迁移过。
Run in the folder itself, as it is, not in a copy.|直接在原目录中运行，不使用副本。
Run the original on the CPU, too, and compare.|同时在 CPU 上运行原脚本并比较。
How far losses and parameters may differ for --compare.|使用 --compare 时，损失与参数允许的差异。
What random numbers start from.|随机数种子。
Put findings of NPU8xx beside what is seen.|把 NPU8xx 的问题与实际观察对照列出。
Exit codes: 0 it ran to its end on the emulated NPU or to a limit that you gave, 1 it fails as it would on an NPU, 2 it stopped for a reason of its own, wrong usage or an error, 3 it was cut by the limit of steps or seconds that holds unless you give one, 4 the emulator lacks something, 5 the script needs a module, a file, an argument or the like.|退出码：0 在模拟 NPU 上运行到结束，或到您给出的上限；1 在 NPU 上同样会失败；2 脚本自行停止、用法有误或出错；3 因默认的步数或时间上限未运行完；4 模拟器未实现；5 脚本需要模块、文件或参数等。
Explain the rule with this CODE or name.|解释编号为 CODE 或为此名称的规则。
Show which configuration applies to PATH, and from where.|显示对 PATH 生效的配置及其来源。
Print what applies, as TOML.|以 TOML 形式输出生效的配置。
Print the script with which a SHELL completes commands, options and rules.|输出供 SHELL 补全命令、选项和规则的脚本。
Or, in ~/.bashrc: eval "$(npulens completion bash)"|或在 ~/.bashrc 中：eval "$(npulens completion bash)"
Serve an editor: the language server protocol.|为编辑器提供服务：语言服务器协议。
It is spoken over standard input and output or, with a PORT, with the first client that connects there and knows the token. The port, any free one for 0, and the token are printed to standard error. The token is a new one each time, or that of the variable NPULENS_TOKEN.|通过标准输入输出通信；给出 PORT 时，与第一个连接该端口且持有令牌的客户端通信。端口号（0 表示任意空闲端口）和令牌输出到标准错误。令牌每次启动时新生成，也可由环境变量 NPULENS_TOKEN 指定。
Use a socket.|使用套接字。
Use a WebSocket; needs the package websockets.|使用 WebSocket；需要安装 websockets 包。
The address to listen at.|监听的地址。
With --websocket: let pages of this origin connect, such as https://example.com.|配合 --websocket：允许来自此源（origin）的网页连接，例如 https://example.com。
"""


@cache
def _translations() -> dict[str, str]:
    pairs = (line.partition("|") for line in _TEXTS.strip().splitlines())
    return {english: chinese for english, _, chinese in pairs}


def translated(text: str) -> str:
    """A text of the help in Chinese; as it is if it has no translation."""
    return _translations().get(text, text)

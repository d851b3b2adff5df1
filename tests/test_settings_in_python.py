"""Settings that choose what only CUDA has, given in Python by whatever way."""

import pytest

from helpers import check, fixed

FOUND = {
    "by a keyword": 'TrainingArguments(out, optim=⟦NPU605:"adamw_bnb_8bit"⟧)',
    "by an entry": 'model = {⟦NPU902:"flash_attn": True⟧}',
    "trees on a GPU": "import xgboost\nxgboost.XGBRegressor(tree_method=⟦NPU902:'gpu_hist'⟧)",
    "trees on a GPU, by a dictionary": "params = {'tree_method': ⟦NPU902:'gpu_hist'⟧}",
    "boosting on a GPU": (
        "from catboost import CatBoostClassifier\nCatBoostClassifier(task_type=⟦NPU902:'GPU'⟧)"
    ),
    "clusters on a GPU": "import faiss\nfaiss.Kmeans(8, 10, ⟦NPU902:gpu=True⟧)",
    "TF32 of transformers": "TrainingArguments(out, ⟦NPU902:tf32=True⟧)",
    "TF32 of a class derived from it": (
        "from transformers import TrainingArguments\nclass Own(TrainingArguments):\n"
        "    ⟦NPU902:tf32: bool = field(default=True⟧, metadata={})"
    ),
    "by an argument of dict": "model = dict(type='EVA', ⟦NPU902:flash_attn=True⟧)",
    "by an assignment": "⟦NPU902:config.use_flash_attn = True⟧",
    "by a default": "def build(⟦NPU902:use_flash_attention=True⟧):\n    pass",
    "by a field": "class Options:\n    ⟦NPU902:use_flash_attn: bool = True⟧",
    "by a field of pydantic": ('class C(M):\n    optim: str = Field(⟦NPU605:"paged_adamw_32bit"⟧)'),
    "by a field of a data class": (
        'class C:\n    optim: str = field(default=⟦NPU605:"paged_adamw_8bit"⟧)'
    ),
    "by an option": 'add_argument("--optim", default=⟦NPU605:"paged_adamw_8bit"⟧)',
    "one of two": 'TrainingArguments(optim=⟦NPU902:"adamw_apex_fused"⟧ if apex else "adamw_torch")',
    "a member of an enumeration": (
        "from transformers.training_args import OptimizerNames\n"
        "optimizer = ⟦NPU605:OptimizerNames.PAGED_LION⟧ if bits == 8 else OptimizerNames.SGD"
    ),
    "a member by its module": (
        "import transformers\n"
        "build(optim=⟦NPU902:transformers.training_args.OptimizerNames.ADAMW_APEX_FUSED⟧)"
    ),
    "attention by name": 'build(attn_mode=⟦NPU902:"xformers"⟧)',
    "LightGBM": "import lightgbm as l\nl.LGBMClassifier(device=⟦NPU902:'gpu'⟧, n_jobs=2)",
    "LightGBM by entries": "params = {'device_type': ⟦NPU902:'gpu'⟧, 'num_leaves': 31}",
    "an index of Milvus": "index = {'index_type': ⟦NPU902:'GPU_IVF_FLAT'⟧, 'metric_type': 'L2'}",
    "grad-cam": "with GradCAM(model=m, target_layers=l, ⟦NPU902:use_cuda=True⟧) as cam: cam(x)",
    "COMET": "scores = model.predict(data, batch_size=8, ⟦NPU902:gpus=1⟧)",
    "a machine": "machine_type = args.machine or read('machine') or ⟦NPU903:'g2-standard-4'⟧",
    "TF32": "TrainingArguments(per_device_train_batch_size=8, ⟦NPU902:tf32=True⟧)",
}
SILENT = {
    "TF32 of nobody known": "settings = dict(tf32=True)",
    "clusters on the host": "import faiss\nfaiss.Kmeans(8, 10, gpu=False)",
    "a GPU of something else": "run(gpu=True)",
    "a task of something else": "config = LoraConfig(task_type='CAUSAL_LM')",
    "TF32 that is off": "TrainingArguments(out, tf32=False)",
    "on the host": (
        "l.LGBMClassifier(device='cpu')\nindex = {'index_type': 'IVF_FLAT'}\n"
        "GradCAM(model=m, target_layers=l)\nmodel.predict(data, gpus=0)"
    ),
    "an own switch": "Trainer(model, use_cuda=True)\nplace(gpus=1)\nbuild(device='gpu')",
    "off": "model = dict(flash_attn=False, channels_last=False, use_xformers=None)",
    "not known": "model = dict(flash_attn=args.flash)",
    "a switch of a command line": "add_argument('--use_flash_attn', action='store_true')",
    "a member of another enumeration": "optimizer = OptimizerNames.ADAMW_BNB",
    "a member that is asked for": (
        "from transformers.training_args import OptimizerNames\n"
        "quantized = args.optim in [OptimizerNames.ADAMW_BNB, OptimizerNames.PAGED_LION]"
    ),
    "another optimizer": 'TrainingArguments(optim="adamw_torch")',
    "an order of dimensions": "LayerNorm(8, channels_last=True)",
    "Megatron, which has its own": "ENGINE = 'megatron'\nmodel = dict(use_flash_attn=True)",
    "what has to stand near it is elsewhere": (
        "batches = dict(per_device_train_batch_size=8)\nrun(tf32=True)"
    ),
    "a number of many digits": f"build(0x{'f' * 5000}, optim=0x{'f' * 5000})",
    "another meaning": 'run(tf32=True, mode="xformers")',
}


@pytest.mark.parametrize("name", [*FOUND, *SILENT])
def test_what_settings_choose(name: str) -> None:
    check({**FOUND, **SILENT}[name] + "\n")


def test_the_fix_is_that_of_files_of_settings() -> None:
    assert fixed("build(use_xformers=True)\n") == "build(use_xformers=False)\n"
    optim = "TrainingArguments(optim='adamw_{}')\n"
    assert fixed(optim.format("apex_fused")) == optim.format("torch_npu_fused")

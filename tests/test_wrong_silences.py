"""Places that were silent for a reason that is not true of them, as blind readers found."""

import pytest

from helpers import check


@pytest.mark.parametrize(
    "snippet",
    [
        # the second number of a release
        "import torch\nif int(torch.__version__.split('.')[1]) < 4:\n    raise ValueError\n"
        "torch.set_default_device(⟦NPU110:'cuda'⟧)\n",
        "import torch\nif parse(torch.__version__).minor < 4:\n    raise ValueError\n"
        "torch.set_default_device(⟦NPU110:'cuda'⟧)\n",
        "import torch\nif int(torch.__version__.split('.')[1]) >= 14:\n"
        "    torch.set_default_device('cuda')\n",
        # a variable that has to be there
        "import os\ndef f():\n    seen = os.environ.get(⟦NPU901:'CUDA_VISIBLE_DEVICES'⟧)\n"
        "    if not seen or ',' in seen:\n        raise RuntimeError\n",
        "import os\ndef f():\n    seen = os.environ.get(⟦NPU901:'CUDA_VISIBLE_DEVICES'⟧)\n"
        "    if seen is None:\n        raise RuntimeError\n",
        "import os\ndef f():\n    seen = os.environ.get('CUDA_VISIBLE_DEVICES', '')\n"
        "    if ',' in seen:\n        raise RuntimeError\n",
        # the text of an error
        "def f():\n    try:\n        g()\n    except RuntimeError as error:\n"
        "        text = str(error)\n        if ⟦NPU111:'cuda'⟧ in text or 'cudnn' in text:\n"
        "            return\n        return ⟦NPU111:'CUDA'⟧ in str(error)\n",
        "def f(text):\n    return ⟦NPU110:'cuda'⟧ in text\n",
        # a device by its key
        "def f(settings):\n    return settings.get('device') == ⟦NPU111:'cuda'⟧\n",
        "def f(settings):\n    return settings.get('maker') == ⟦NPU110:'cuda'⟧\n",
    ],
)
def test_found(snippet: str) -> None:
    check(snippet)

"""Gates and activations as public code writes them."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LlamaMLP(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Packed(nn.Module):  # NPU703
    def __init__(self, dim, hidden, bias=True):
        super().__init__()
        self.w12 = nn.Linear(dim, 2 * hidden, bias=bias)
        self.w3 = nn.Linear(hidden, dim, bias=bias)

    def forward(self, x):
        x1, x2 = self.w12(x).chunk(2, dim=-1)
        return self.w3(F.silu(x1) * x2)


class SwishByHand(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def swish(self, x):
        return x * torch.sigmoid(x)

    def forward(self, x):
        return self.down(self.swish(self.gate(x)) * self.up(x))


class SwishModule(nn.Module):
    def forward(self, x):
        return x * x.sigmoid()


class GateBySwish(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.act = SwishModule()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        return self.act(self.gate(x)) * self.up(x)


class LambdaGate(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.act = lambda x: x * torch.sigmoid(x)
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        return self.act(self.gate(x)) * self.up(x)


class ChatGLMGate(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.dense_h_to_4h = nn.Linear(dim, hidden * 2)

        def swiglu(x):
            x = torch.chunk(x, 2, dim=-1)
            return F.silu(x[0]) * x[1]

        self.activation_func = swiglu
        self.dense_4h_to_h = nn.Linear(hidden, dim)

    def forward(self, hidden_states):
        return self.dense_4h_to_h(self.activation_func(self.dense_h_to_4h(hidden_states)))


class InPlace(nn.Module):  # NPU703
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden)
        self.up_proj = nn.Linear(dim, hidden)

    def forward(self, x):
        gate = self.gate_proj(x)
        gate = F.silu(gate)
        gate *= self.up_proj(x)
        return gate


class DefaultActivation(nn.Module):  # NPU703
    def __init__(self, dim, hidden, act_layer=nn.SiLU, drop=0.0):
        super().__init__()
        self.fc1_g = nn.Linear(dim, hidden)
        self.fc1_x = nn.Linear(dim, hidden)
        self.act = act_layer()
        self.drop1 = nn.Dropout(drop)

    def forward(self, x):
        x_gate = self.fc1_g(x)
        x = self.fc1_x(x)
        return self.drop1(self.act(x_gate) * x)


class DictOfActivations(nn.Module):  # NPU703
    def __init__(self, dim, hidden, act="silu"):
        super().__init__()
        self.act = {
            "silu": F.silu,
            "gelu": F.gelu,
            "gelu_tanh": nn.GELU(approximate="tanh"),
            "relu": F.relu,
        }[act]
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        return self.act(self.gate(x)) * self.up(x)


class SwiGLU(nn.Module):  # NPU703
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return F.silu(gate) * x


class GEGLU(nn.Module):  # NPU704
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return x * F.gelu(gate)


class DiffusersGEGLU(nn.Module):  # NPU704
    def __init__(self, dim_in, dim_out, bias=True):
        super().__init__()
        self.proj = nn.Linear(dim_in, dim_out * 2, bias=bias)

    def gelu(self, gate):
        if gate.device.type != "mps":
            return F.gelu(gate)
        return F.gelu(gate.to(dtype=torch.float32)).to(dtype=gate.dtype)

    def forward(self, hidden_states):
        hidden_states, gate = self.proj(hidden_states).chunk(2, dim=-1)
        return hidden_states * self.gelu(gate)


class T5Gated(nn.Module):  # NPU704
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.wi_0 = nn.Linear(d_model, d_ff, bias=False)
        self.wi_1 = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.gelu_act = nn.GELU(approximate="tanh")

    def forward(self, hidden_states):
        gelu = self.gelu_act(self.wi_0(hidden_states))
        linear = self.wi_1(hidden_states)
        return self.wo(self.dropout(gelu * linear))


class GemmaMLP(nn.Module):  # NPU704
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size)
        self.up_proj = nn.Linear(hidden_size, intermediate_size)
        self.down_proj = nn.Linear(intermediate_size, hidden_size)

    def forward(self, x):
        gate = self.gate_proj(x)
        gate = F.gelu(gate, approximate="tanh")
        up = self.up_proj(x)
        return self.down_proj(gate * up)


class NewGELU(nn.Module):  # NPU705
    def forward(self, x):
        return (
            0.5
            * x
            * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        )


class ErfGELU(nn.Module):  # NPU705
    def forward(self, x):
        return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


class QuickGELU(nn.Module):  # NPU705
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


def gelu_with_tensor(x):  # NPU705
    cdf = 0.5 * (1.0 + torch.tanh(torch.sqrt(torch.tensor(2.0 / math.pi)) * (x + 0.044715 * x**3)))
    return x * cdf


def gelu_by_constant(x):  # NPU705
    return 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))


class ConvGLU(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def forward(self, inputs):
        outputs, gate = inputs.chunk(2, dim=self.dim)
        return outputs * gate.sigmoid()


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Conv2d(channels, channels, 1)
        self.act = nn.SiLU()

    def forward(self, x):
        return x * self.act(self.fc(x.mean((2, 3), keepdim=True)))

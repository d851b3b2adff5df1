"""Mixtures, losses, stochastic depth and optimizers as public code writes them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import SGD, Adam, AdamW
from torchvision.ops import nms


class Mixtral(nn.Module):  # NPU712
    def __init__(self, experts, num_experts, top_k):
        super().__init__()
        self.experts = nn.ModuleList(experts)
        self.num_experts, self.top_k = num_experts, top_k

    def forward(self, hidden, weights, selected):
        out = torch.zeros_like(hidden)
        mask = F.one_hot(selected, self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(mask[expert_idx])
            current = hidden[None, top_x].reshape(-1, hidden.shape[-1])
            current = self.experts[expert_idx](current) * weights[top_x, idx, None]
            out.index_add_(0, top_x, current)
        return out


class MistralMoe(nn.Module):  # NPU712
    def __init__(self, experts, gate, k):
        super().__init__()
        self.experts, self.gate, self.k = nn.ModuleList(experts), gate, k

    def forward(self, inputs):
        weights, selected = torch.topk(self.gate(inputs), self.k)
        weights = F.softmax(weights, dim=1, dtype=torch.float).to(inputs.dtype)
        results = torch.zeros_like(inputs)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(selected == i)
            results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(inputs[batch_idx])
        return results


class MaskedExperts(nn.Module):  # NPU712
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    def forward(self, x, gates, indices):
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = (indices == i).any(dim=-1)
            if mask.any():
                out[mask] += expert(x[mask]) * gates[mask, i].unsqueeze(-1)
        return out


class FlatMasked(nn.Module):  # NPU712
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    def forward(self, x, gating, indices):
        final = torch.zeros_like(x)
        flat_x = x.view(-1, x.size(-1))
        flat_gating = gating.view(-1, gating.size(-1))
        for i, expert in enumerate(self.experts):
            expert_mask = (indices == i).any(dim=-1)
            flat_mask = expert_mask.view(-1)
            if flat_mask.any():
                expert_input = flat_x[flat_mask]
                expert_output = expert(expert_input)
                scores = flat_gating[flat_mask, i].unsqueeze(1)
                final[expert_mask] += (expert_output * scores).squeeze(1)
        return final


class Assigned(nn.Module):  # NPU712
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    def forward(self, x, flat_topk_idx, weights):
        y = torch.empty_like(x)
        for i, expert in enumerate(self.experts):
            y[flat_topk_idx == i] = expert(x[flat_topk_idx == i])
        return (y.view(*weights.shape, -1) * weights.unsqueeze(-1)).sum(dim=1)


class Dispatched(nn.Module):  # NPU712
    def __init__(self, experts, num_experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)
        self.num_experts = num_experts

    def forward(self, x, sizes):
        inputs = torch.split(x, sizes)
        outputs = [self.experts[i](inputs[i]) for i in range(self.num_experts)]
        return torch.cat(outputs, 0)


class DispatchedZip(nn.Module):  # NPU712
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    def forward(self, x, sizes):
        chunks = x.split(sizes)
        outputs = []
        for expert, chunk in zip(self.experts, chunks):
            outputs.append(expert(chunk))
        return torch.cat(outputs, dim=0)


class DeepSeekInference(nn.Module):  # NPU712
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)

    @torch.no_grad()
    def forward(self, x, tokens_per_expert, token_idxs, weights):
        expert_cache = torch.zeros_like(x)
        for i, end_idx in enumerate(tokens_per_expert):
            start_idx = 0 if i == 0 else tokens_per_expert[i - 1]
            if start_idx == end_idx:
                continue
            expert = self.experts[i]
            exp_token_idx = token_idxs[start_idx:end_idx]
            expert_out = expert(x[exp_token_idx])
            expert_out.mul_(weights[exp_token_idx])
            expert_cache.scatter_add_(
                0, exp_token_idx.view(-1, 1).repeat(1, x.shape[-1]), expert_out
            )
        return expert_cache


class StackOfHeads(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


def drop_path(x, drop_prob: float = 0.0, training: bool = False):  # NPU714
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
    random_tensor.floor_()
    return x.div(keep_prob) * random_tensor


class StochasticDepth(nn.Module):  # NPU714
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0.0:
            return x
        keep = 1.0 - self.p
        mask = torch.rand(x.shape[0], 1, 1, device=x.device) < keep
        return x * mask / keep


class BernoulliDepth(nn.Module):  # NPU714
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.training:
            survival = 1 - self.p
            noise = torch.empty([x.shape[0]] + [1] * (x.ndim - 1), dtype=x.dtype, device=x.device)
            noise.bernoulli_(survival).div_(survival)
            x = x * noise
        return x


class ScaledByFlag(nn.Module):  # NPU714
    def __init__(self, p, scale_by_keep=True):
        super().__init__()
        self.p, self.scale_by_keep = p, scale_by_keep

    def forward(self, input):
        if not self.training:
            return input
        mask = input.new_empty([input.shape[0]] + [1] * (input.ndim - 1)).bernoulli_(1 - self.p)
        if self.scale_by_keep:
            input = input / (1 - self.p)
        return input * mask


def label_loss(logits, targets):  # NPU713
    logprobs = F.log_softmax(logits, dim=-1)
    return -logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1).mean()


def smoothed(x, target, smoothing=0.1):  # NPU713
    confidence = 1.0 - smoothing
    logprobs = F.log_softmax(x, dim=-1)
    nll_loss = -logprobs.gather(dim=-1, index=target.unsqueeze(1))
    nll_loss = nll_loss.squeeze(1)
    smooth_loss = -logprobs.mean(dim=-1)
    loss = confidence * nll_loss + smoothing * smooth_loss
    return loss.mean()


def by_logsumexp(logits, targets):  # NPU713
    log_probs = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
    return -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1).mean()


def with_maximum(logits, targets):  # NPU713
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    log_sum = shifted.exp().sum(dim=-1, keepdim=True).log()
    picked = shifted.gather(-1, targets.unsqueeze(-1))
    return (log_sum - picked).mean()


def one_hot_loss(logits, targets, classes):  # NPU713
    one_hot = F.one_hot(targets, classes).float()
    return -(one_hot * F.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def sequence_logprobs(logits, labels):  # NPU713
    return torch.gather(logits.log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)


def mixed_dimensions(logits, tokens):  # NPU713
    return F.log_softmax(logits, dim=-1).gather(2, tokens.unsqueeze(-1)).squeeze(-1)


def by_hand(logits, targets):  # NPU713
    logits = logits - logits.max(dim=-1, keepdim=True)[0]
    chosen = torch.gather(input=logits, dim=-1, index=targets.unsqueeze(-1)).squeeze()
    normalizer = torch.log(logits.exp().sum(dim=-1))
    return -(chosen - normalizer).mean()


def distillation(student, teacher):
    return -(F.softmax(teacher, dim=-1) * F.log_softmax(student, dim=-1)).sum(-1).mean()


def optimizer_by_name(model, name, lr):  # NPU716
    model.cuda()
    if name == "adam":
        optimizer = Adam(model.parameters(), lr=lr)
    elif name == "sgd":
        optimizer = SGD(model.parameters(), lr=lr, momentum=0.9)
    else:
        raise ValueError(name)
    return optimizer


def optimizer_by_class(model, lr):  # NPU716
    model.cuda()
    optim_cls = AdamW
    return optim_cls(model.parameters(), lr=lr, weight_decay=0.1)


def optimizer_of_groups(model, lr):  # NPU716
    model.cuda()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return AdamW(groups, lr=lr, betas=(0.9, 0.95))


def detect(boxes, scores):
    return nms(boxes.cuda(), scores.cuda(), 0.5)


class WeightedSegmentationLoss(nn.Module):  # NPU719
    def __init__(self, class_weights=None, ignored=255):
        super().__init__()
        self.nll = nn.NLLLoss(weight=class_weights, ignore_index=ignored, reduction="mean")

    def forward(self, scores, labels):
        return self.nll(F.log_softmax(scores, dim=1), labels)


def masked_language_loss(scores, labels):  # NPU719
    return F.nll_loss(F.log_softmax(scores, -1), labels, ignore_index=0)


class PlainLikelihood(nn.Module):  # NPU713
    def __init__(self):
        super().__init__()
        self.log_softmax = nn.LogSoftmax(dim=-1)
        self.criterion = nn.NLLLoss()

    def forward(self, scores, labels):
        return self.criterion(self.log_softmax(scores), labels)


class SmoothedByMixing(nn.Module):  # NPU713
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
        self.log_soft = nn.LogSoftmax(dim=1)
        self.kl = nn.KLDivLoss(reduction="none")

    def forward(self, scores, target):
        classes = scores.size(1)
        rows = torch.zeros_like(scores).scatter(1, target.view(-1, 1), 1)
        rows = rows * (1 - self.eps) + (1 - rows) * self.eps / (classes - 1)
        return self.kl(self.log_soft(scores), rows).sum(dim=1).mean()


class SmoothedInPlace(nn.Module):  # NPU713
    def __init__(self, size, smoothing):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.size, self.smoothing = size, smoothing

    def forward(self, scores, target):
        rows = scores.data.clone()
        rows.fill_(self.smoothing / (self.size - 2))
        rows.scatter_(1, target.data.unsqueeze(1), 1 - self.smoothing)
        return self.criterion(torch.log_softmax(scores, -1), rows)


class SmoothedProduct(nn.Module):  # NPU713
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes, self.smoothing = classes, smoothing

    def forward(self, scores, target):
        scores = scores.log_softmax(dim=-1)
        with torch.no_grad():
            rows = torch.zeros_like(scores)
            rows.fill_(self.smoothing / (self.classes - 1))
            rows.scatter_(1, target.data.unsqueeze(1), 1 - self.smoothing)
        return torch.mean(torch.sum(-rows * scores, dim=-1))


class Distilled(nn.Module):
    def __init__(self, heat):
        super().__init__()
        self.heat = heat
        self.divergence = nn.KLDivLoss(reduction="batchmean")

    def forward(self, scores, taught):
        taught = F.softmax(taught / self.heat, dim=-1)
        return self.divergence(F.log_softmax(scores / self.heat, dim=-1), taught)

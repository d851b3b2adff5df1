"""Functions as real code has them, for `test_shapes_truth.py` to run and to analyse.

Some have shapes that depend on the values of tensors or wait for the device, many only look so.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Losses and metrics


def masked_mean_loss(pred: Tensor, target: Tensor, ignore_index: int = 255) -> Tensor:
    valid = target != ignore_index
    kept = pred[valid]
    wanted = target[valid].float()
    return F.mse_loss(kept, wanted)


def weighted_mean_loss(pred: Tensor, target: Tensor, ignore_index: int = 255) -> Tensor:
    valid = (target != ignore_index).float()
    error = (pred - target) ** 2
    loss = (error * valid).sum() / valid.sum().clamp(min=1)
    return loss


def hard_negative_mining(losses: Tensor, positive: Tensor, ratio: int = 3) -> Tensor:
    is_positive = positive > 0
    count = int(is_positive.sum().item())
    negatives = losses.masked_fill(is_positive, float("-inf"))
    hardest, order = negatives.topk(min(count * ratio, losses.shape[0]))
    total = hardest.clamp(min=0).sum() + losses[is_positive].sum()
    return total


def focal_loss(logits: Tensor, labels: Tensor, gamma: float = 2.0) -> Tensor:
    chance = logits.sigmoid()
    of_label = torch.where(labels > 0, chance, 1 - chance)
    weight = (1 - of_label).pow(gamma)
    loss = -(weight * of_label.clamp(min=1e-6).log()).mean()
    return loss


def dice_score(logits: Tensor, labels: Tensor) -> Tensor:
    hard = (logits > 0).float()
    overlap = (hard * labels).sum(dim=(1, 2))
    total = hard.sum(dim=(1, 2)) + labels.sum(dim=(1, 2))
    score = (2 * overlap + 1) / (total + 1)
    return score.mean()


def top_one_accuracy(logits, labels):
    guess = logits.argmax(dim=-1)
    hits = guess.eq(labels)
    rate = hits.float().mean()
    return rate.item() * 100


def accuracy_on_device(output: Tensor, target: Tensor, k: int = 3) -> Tensor:
    _, guess = output.topk(k, 1, True, True)
    guess = guess.t()
    correct = guess.eq(target.view(1, -1).expand_as(guess))
    first = correct[:k].reshape(-1).float().sum(0)
    return first.mul_(100.0 / target.size(0))


def confusion_matrix(guess: Tensor, labels: Tensor, classes: int = 4) -> Tensor:
    inside = (labels >= 0) & (labels < classes)
    pairs = classes * labels[inside] + guess[inside]
    counts = torch.bincount(pairs, minlength=classes * classes)
    table = counts.view(classes, classes)
    return table


def histogram_by_scatter(labels: Tensor, classes: int = 4) -> Tensor:
    counts = torch.zeros(classes, device=labels.device)
    ones = torch.ones_like(labels, dtype=torch.float32)
    counts.scatter_add_(0, labels.clamp(0, classes - 1), ones)
    return counts


def contrastive_pairs(features: Tensor, labels: Tensor) -> Tensor:
    same = labels[:, None] == labels[None, :]
    apart = ~same
    similarity = features @ features.t()
    near = similarity[same]
    far = similarity[apart]
    margin = F.relu(far - 0.5).mean() + (1 - near).mean()
    return margin


def contrastive_pairs_masked(features: Tensor, labels: Tensor) -> Tensor:
    same = labels[:, None] == labels[None, :]
    similarity = features @ features.t()
    near = similarity.masked_fill(~same, 0.0)
    loss = near.sum() / same.sum()
    return loss


def perplexity(logits: Tensor, labels: Tensor) -> float:
    shifted = logits[..., :-1, :].contiguous()
    wanted = labels[..., 1:].contiguous()
    loss = F.cross_entropy(shifted.view(-1, shifted.size(-1)), wanted.view(-1))
    return float(torch.exp(loss))


def smooth_l1_for_positives(deltas: Tensor, targets: Tensor, labels: Tensor) -> Tensor:
    positive = torch.nonzero(labels > 0, as_tuple=True)[0]
    chosen = deltas[positive]
    wanted = targets[positive]
    loss = F.smooth_l1_loss(chosen, wanted, reduction="sum") / max(positive.numel(), 1)
    return loss


def loss_if_any(pred: Tensor, target: Tensor) -> Tensor:
    mask = target > 0
    if not mask.any():
        return pred.sum() * 0.0
    inside = pred.masked_select(mask)
    loss = inside.abs().mean()
    return loss


def ohem(losses: Tensor, keep: float = 0.5) -> Tensor:
    flat = losses.flatten()
    number = int(keep * flat.numel())
    hardest, _ = torch.topk(flat, number)
    return hardest.mean()


def threshold_ohem(losses: Tensor, threshold: float = 0.7) -> Tensor:
    flat = losses.view(-1)
    ordered, _ = torch.sort(flat, descending=True)
    if ordered[4] > threshold:
        hard = ordered[ordered > threshold]
    else:
        hard = ordered[:5]
    return hard.mean()


# Detection


def filter_by_score(boxes: Tensor, scores: Tensor, threshold: float = 0.5):
    keep = scores > threshold
    boxes = boxes[keep]
    scores = scores[keep]
    order = scores.argsort(descending=True)
    boxes = boxes[order]
    return boxes, scores


def top_boxes(boxes: Tensor, scores: Tensor, k: int = 5):
    best, order = scores.topk(k)
    chosen = boxes[order]
    width = chosen[:, 2] - chosen[:, 0]
    return chosen, best, width


def remove_small_boxes(boxes: Tensor, least: float) -> Tensor:
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    keep = (width >= least) & (height >= least)
    keep = torch.where(keep)[0]
    return keep


def box_iou(first: Tensor, second: Tensor) -> Tensor:
    area1 = (first[:, 2] - first[:, 0]) * (first[:, 3] - first[:, 1])
    area2 = (second[:, 2] - second[:, 0]) * (second[:, 3] - second[:, 1])
    corner = torch.max(first[:, None, :2], second[:, :2])
    other = torch.min(first[:, None, 2:], second[:, 2:])
    size = (other - corner).clamp(min=0)
    inter = size[:, :, 0] * size[:, :, 1]
    return inter / (area1[:, None] + area2 - inter).clamp(min=1e-6)


def greedy_nms(boxes: Tensor, scores: Tensor, threshold: float = 0.3) -> Tensor:
    order = scores.argsort(descending=True)
    kept = []
    while order.numel() > 0:
        best = order[0]
        kept.append(best)
        overlap = box_iou(boxes[best][None], boxes[order[1:]])[0]
        order = order[1:][overlap <= threshold]
    result = torch.stack(kept)
    return result


def assign_anchors(anchors: Tensor, boxes: Tensor) -> Tensor:
    overlaps = box_iou(anchors, boxes)
    most, matched = overlaps.max(dim=1)
    labels = torch.full_like(matched, -1)
    labels[most < 0.3] = 0
    labels[most >= 0.5] = 1
    return labels


def sample_anchors(labels: Tensor, size: int = 8) -> Tensor:
    positive = torch.where(labels >= 1)[0]
    negative = torch.where(labels == 0)[0]
    count = min(positive.numel(), size // 2)
    chosen = positive[torch.randperm(positive.numel(), device=positive.device)[:count]]
    rest = negative[: size - count]
    sampled = torch.cat([chosen, rest])
    return sampled


def decode_boxes(deltas: Tensor, anchors: Tensor) -> Tensor:
    width = anchors[:, 2] - anchors[:, 0]
    centre = anchors[:, 0] + 0.5 * width
    moved = deltas[:, 0] * width + centre
    grown = torch.exp(deltas[:, 2].clamp(max=4.0)) * width
    boxes = torch.stack([moved - grown / 2, moved + grown / 2], dim=-1)
    return boxes


def multi_level_boxes(levels: list[Tensor], threshold: float = 0.5):
    found = []
    for level in levels:
        scores = level.sigmoid()
        chosen = level[scores > threshold]
        found.append(chosen)
    together = torch.cat(found)
    return together


def flatten_levels(levels: list[Tensor]) -> Tensor:
    flat = [level.flatten(1) for level in levels]
    sizes = [part.shape[1] for part in flat]
    joined = torch.cat(flat, dim=1)
    parts = joined.split(sizes, dim=1)
    first = parts[0] + 1
    return first


def points_in_boxes(points: Tensor, boxes: Tensor) -> Tensor:
    left = points[:, None, 0] - boxes[None, :, 0]
    right = boxes[None, :, 2] - points[:, None, 0]
    inside = torch.stack([left, right], -1).min(dim=-1)[0] > 0
    area = torch.where(inside, right + left, torch.full_like(left, 1e8))
    least, index = area.min(dim=1)
    return index


def crop_by_mask(image: Tensor, mask: Tensor) -> Tensor:
    rows, columns = torch.where(mask > 0.5)
    top, bottom = rows.min(), rows.max()
    left, right = columns.min().item(), columns.max().item()
    crop = image[:, int(top) : int(bottom) + 1, left : right + 1]
    return crop


def per_image_targets(targets: Tensor, batch: int = 3) -> Tensor:
    which = targets[:, 0]
    _, counts = which.unique(return_counts=True)
    out = torch.zeros(batch, counts.max(), 4, device=targets.device)
    for j in range(batch):
        matches = which == j
        n = matches.sum()
        if n:
            out[j, :n] = targets[matches, 1:]
    total = out.sum()
    return total


def pad_detections(boxes: Tensor, scores: Tensor, size: int = 16) -> Tensor:
    kept = boxes[scores > 0.5]
    padded = F.pad(kept, (0, 0, 0, size - kept.shape[0]))
    doubled = padded * 2
    return doubled


# Routing, packing, sampling


class Router(nn.Module):
    def __init__(self, width: int = 8, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.k = 2

    def forward(self, x):
        batch, length, width = x.shape
        flat = x.view(-1, width)
        weights = self.gate(flat).softmax(dim=-1)
        top, chosen = weights.topk(self.k, dim=-1)
        result = torch.zeros_like(flat)
        for index, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == index)
            current = flat[token]
            weighed = expert(current) * top[token, slot, None]
            result.index_add_(0, token, weighed)
        result = result.view(batch, length, width)
        return result


class DenseRouter(nn.Module):
    def __init__(self, width: int = 8, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        weights = self.gate(x).softmax(dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        mixed = (outputs * weights.unsqueeze(-1)).sum(dim=-2)
        return mixed


class HitRouter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, hidden: Tensor, chosen: Tensor) -> Tensor:
        mask = F.one_hot(chosen, num_classes=4).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        result = torch.zeros_like(hidden)
        for expert in hit:
            layer = self.experts[expert[0]]
            slot, token = torch.where(mask[expert].squeeze(0))
            state = hidden[None, token].reshape(-1, 8)
            result.index_add_(0, token, layer(state))
        return result


def grouped_tokens(x: Tensor, expert: Tensor, experts: int = 4) -> Tensor:
    order = expert.argsort()
    ordered = x[order]
    counts = torch.bincount(expert, minlength=experts).tolist()
    groups = ordered.split(counts)
    first = groups[0] * 2
    return first


def capacity_routing(x: Tensor, scores: Tensor, capacity: int = 3) -> Tensor:
    _, tokens = scores.topk(capacity, dim=0)
    gathered = x[tokens.t()]
    return gathered


def repeat_by_count(x: Tensor, counts: Tensor) -> Tensor:
    long = torch.repeat_interleave(x, counts, dim=0)
    return long.mean(dim=0)


def repeat_indices(counts: Tensor) -> Tensor:
    indices = torch.repeat_interleave(counts)
    return indices.sum()


def repeat_to_a_given_length(x: Tensor, counts: Tensor) -> Tensor:
    twice = torch.full_like(counts, 2)
    long = torch.repeat_interleave(x, twice, dim=0, output_size=2 * x.shape[0])
    indices = torch.repeat_interleave(twice, output_size=2 * x.shape[0])
    return long.mean(dim=0) + indices.sum()


def repeat_to_a_length_of_the_data(x: Tensor, counts: Tensor) -> Tensor:
    total = int(counts.sum())
    long = x.repeat_interleave(counts, dim=0, output_size=total)
    return long.mean(dim=0)


def repeat_by_number(x: Tensor, times: int = 3) -> Tensor:
    long = x.repeat_interleave(times, dim=0)
    wide = torch.repeat_interleave(x, 2, dim=-1)
    return long.sum() + wide.sum()


def unpad(hidden: Tensor, attention_mask: Tensor):
    lengths = attention_mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.nonzero(attention_mask.flatten(), as_tuple=False).flatten()
    longest = lengths.max().item()
    starts = F.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    flat = hidden.flatten(0, 1)[indices]
    return flat, starts, longest


def pad_again(flat: Tensor, indices: Tensor, batch: int = 2, length: int = 6) -> Tensor:
    output = torch.zeros(batch * length, flat.shape[-1], device=flat.device)
    output[indices] = flat
    restored = output.view(batch, length, -1)
    return restored


def split_by_lengths(flat: Tensor, lengths: Tensor) -> Tensor:
    parts = torch.split(flat, lengths.tolist())
    padded = pad_sequence(parts, batch_first=True)
    return padded


def trim_to_longest(ids: Tensor, mask: Tensor) -> Tensor:
    longest = int(mask.sum(1).max())
    trimmed = ids[:, :longest]
    embedded = trimmed.float().unsqueeze(-1)
    return embedded


def length_mask(lengths: Tensor) -> Tensor:
    positions = torch.arange(lengths.max(), device=lengths.device)
    mask = positions[None, :] < lengths[:, None]
    return mask


def length_mask_of_known_size(lengths: Tensor, size: int = 12) -> Tensor:
    positions = torch.arange(size, device=lengths.device)
    mask = positions[None, :] < lengths[:, None]
    weights = mask.float() / lengths[:, None]
    return weights


def top_p_sampling(logits: Tensor, p: float = 0.9) -> Tensor:
    ordered, order = torch.sort(logits, descending=True)
    cumulated = ordered.softmax(dim=-1).cumsum(dim=-1)
    remove = cumulated > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    removed = remove.scatter(1, order, remove)
    logits = logits.masked_fill(removed, float("-inf"))
    token = torch.multinomial(logits.softmax(dim=-1), num_samples=1)
    return token


def greedy_generation(embedding: Tensor, ids: Tensor, steps: int = 4, end: int = 0) -> Tensor:
    unfinished = torch.ones(ids.shape[0], dtype=torch.long, device=ids.device)
    for _ in range(steps):
        logits = embedding[ids[:, -1]] @ embedding.t()
        token = logits.argmax(-1) * unfinished
        ids = torch.cat([ids, token[:, None]], dim=-1)
        unfinished = unfinished * token.ne(end).long()
        if unfinished.max() == 0:
            break
    return ids


def static_cache(keys: Tensor, cache: Tensor, position: Tensor) -> Tensor:
    cache.index_copy_(1, position, keys)
    scores = keys @ cache.transpose(-1, -2)
    weights = scores.softmax(-1)
    return weights


def speculative_accept(draft: Tensor, target: Tensor) -> Tensor:
    agree = draft == target
    matches = ((~agree).cumsum(dim=-1) < 1).sum()
    accepted = target[:, : matches + 1]
    return accepted


def rejection_sampling(x: Tensor) -> Tensor:
    chance = torch.rand(x.shape[0], device=x.device)
    accepted = x[chance < 0.5]
    scaled = accepted * 2.0
    return scaled


# Layers and helpers


def normalise_valid(x: Tensor, valid: Tensor) -> Tensor:
    weight = valid.to(x.dtype).unsqueeze(-1)
    mean = (x * weight).sum(1) / weight.sum(1).clamp(min=1)
    centred = x - mean.unsqueeze(1)
    return centred


def fill_missing(x: Tensor) -> Tensor:
    missing = torch.isnan(x)
    x[missing] = 0.0
    shifted = x + 1
    return shifted


def drop_missing(x: Tensor) -> Tensor:
    known = x[~torch.isnan(x)]
    centred = known - known.mean()
    return centred


def rows_without_missing(x: Tensor) -> Tensor:
    finite = torch.isfinite(x).all(dim=1)
    rows = x[finite]
    spread = rows.std(dim=0)
    return spread


def clip_if_large(grads: list[Tensor], most: float = 1.0) -> list[Tensor]:
    norms = torch.stack([g.norm() for g in grads])
    total = norms.norm()
    if total > most:
        scale = most / total
        grads = [g * scale for g in grads]
    return grads


def clip_always(grads: list[Tensor], most: float = 1.0) -> list[Tensor]:
    total = torch.stack([g.norm() for g in grads]).norm()
    scale = (most / (total + 1e-6)).clamp(max=1.0)
    return [g * scale for g in grads]


def quantise(x: Tensor, levels: int = 16) -> Tensor:
    low, high = x.aminmax()
    step = (high - low).clamp(min=1e-6) / (levels - 1)
    coded = ((x - low) / step).round()
    return coded * step + low


def split_heads(x: Tensor, heads: int = 2) -> Tensor:
    batch, length, width = x.shape
    query, key, value = x.view(batch, length, heads, -1).chunk(3, dim=-1)
    query = query.transpose(1, 2)
    scores = query @ key.transpose(1, 2).transpose(-2, -1)
    causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    scores = scores.masked_fill(~causal, float("-inf"))
    return scores.softmax(-1)


def relative_index(size: int, x: Tensor) -> Tensor:
    rows = torch.arange(size, device=x.device)
    offsets = rows[None, :] - rows[:, None]
    upper = offsets[torch.triu(torch.ones_like(offsets)) > 0]
    return upper


def random_masking(x: Tensor, ratio: float = 0.75):
    batch, length, width = x.shape
    keep = int(length * (1 - ratio))
    noise = torch.rand(batch, length, device=x.device)
    order = torch.argsort(noise, dim=1)
    kept = torch.gather(x, 1, order[:, :keep].unsqueeze(-1).repeat(1, 1, width))
    mask = torch.ones(batch, length, device=x.device)
    mask[:, :keep] = 0
    return kept, mask


def masked_tokens(x: Tensor, mask: Tensor) -> Tensor:
    hidden = mask.bool()
    visible = x[~hidden].reshape(x.shape[0], -1, x.shape[-1])
    return visible


def connected_pairs(edges: Tensor) -> Tensor:
    ids, inverse = torch.unique(edges, return_inverse=True)
    table = torch.zeros(ids.shape[0], device=edges.device)
    table.scatter_add_(0, inverse.flatten(), torch.ones(inverse.numel(), device=edges.device))
    degree = table[inverse]
    return degree


def segment_mean(x: Tensor, segment: Tensor) -> Tensor:
    number = int(segment.max()) + 1
    total = x.new_zeros(number, x.shape[-1])
    total.index_add_(0, segment, x)
    return total


def segment_mean_of_known_size(x: Tensor, segment: Tensor, number: int = 6) -> Tensor:
    total = x.new_zeros(number, x.shape[-1])
    total.index_add_(0, segment, x)
    counts = torch.zeros(number, device=x.device).index_add_(
        0, segment, torch.ones(segment.shape[0], device=x.device)
    )
    return total / counts.clamp(min=1)[:, None]


def running_total(batches: list[Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = (batch**2).mean()
        total += loss.item()
    return total / len(batches)


def running_total_on_device(batches: list[Tensor]) -> Tensor:
    total = torch.zeros((), device=batches[0].device)
    for batch in batches:
        loss = (batch**2).mean()
        total += loss.detach()
    return total / len(batches)


def report(loss: Tensor, step: int) -> None:
    smoothed = loss.detach() * 0.9
    print(f"step {step}: {smoothed}")


def report_shape(x: Tensor, step: int) -> str:
    rows = x.shape[0]
    return f"step {step}: {rows} rows of {tuple(x.shape)}, {x.dtype}"


def to_host(x: Tensor):
    scaled = x * 255
    array = scaled.clamp(0, 255).cpu()
    return array


def until_converged(x: Tensor, most: int = 20) -> Tensor:
    for _ in range(most):
        following = x / 2 + 1
        if torch.allclose(x, following, atol=1e-2):
            break
        x = following
    return x


def same_tensors(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape:
        return False
    return torch.equal(first, second)


def loss_is_finite(loss: Tensor) -> Tensor:
    assert not torch.isnan(loss).any(), "loss is not finite"
    scaled = loss * 2
    return scaled


def replace_not_finite(loss: Tensor) -> Tensor:
    scaled = torch.nan_to_num(loss)
    chosen = torch.where(torch.isfinite(loss), scaled, torch.zeros_like(scaled))
    return chosen


def select(x, mask):
    return x[mask]


def selected_through_a_helper(x: Tensor) -> Tensor:
    chosen = select(x, x > 0)
    doubled = chosen * 2
    return doubled


def gathered_through_a_helper(x: Tensor, index: Tensor) -> Tensor:
    chosen = select(x, index)
    doubled = chosen * 2
    return doubled


def kept_in_a_dictionary(x: Tensor, scores: Tensor) -> Tensor:
    state = {"all": x, "kept": x[scores > 0.5]}
    everything = state["all"] + 1
    kept = state["kept"] + 1
    return everything.sum() + kept.sum()


def kept_by_condition(x: Tensor, mask: Tensor, select_some: bool = True) -> Tensor:
    if select_some:
        x = x[mask > 0]
    else:
        x = x * mask[:, None]
    y = x.relu()
    return y


def by_list_of_indices(x: Tensor) -> Tensor:
    picked = x[[0, 2, 3]]
    rows = x[torch.tensor([1, 2], device=x.device)]
    even = x[::2]
    return picked.sum() + rows.sum() + even.sum()


def any_positive(x: Tensor) -> bool:
    positive = x.gt(0).any()
    return bool(positive)


def batch_of_kept(images: Tensor, scores: Tensor) -> Tensor:
    chosen = [image[score > 0.5] for image, score in zip(images, scores)]
    padded = pad_sequence(chosen, batch_first=True)
    masks = padded.ne(0)
    return masks


def bounded_selection(x: Tensor, scores: Tensor, size: int = 4) -> Tensor:
    candidates = scores.masked_fill(scores < 0.5, -1.0)
    best = candidates.topk(size).indices
    chosen = torch.index_select(x, 0, best)
    return chosen


def one_hot_of_unknown_size(labels: Tensor) -> Tensor:
    coded = F.one_hot(labels)
    weights = coded.float().mean(0)
    return weights


def one_hot_of_known_size(labels: Tensor, classes: int = 6) -> Tensor:
    coded = F.one_hot(labels.clamp(max=classes - 1), classes)
    weights = coded.float().mean(0)
    return weights


def distances(x: Tensor) -> Tensor:
    pairs = torch.combinations(torch.arange(x.shape[0], device=x.device))
    apart = (x[pairs[:, 0]] - x[pairs[:, 1]]).norm(dim=-1)
    return apart


def count_correct(logits: Tensor, labels: Tensor) -> Tensor:
    right = (logits.argmax(1) == labels).nonzero()
    number = right.size(0)
    rate = torch.full((), number / labels.shape[0], device=labels.device)
    return rate


def select_frames(video: Tensor, step: int) -> Tensor:
    frames = video[:, ::step]
    last = video[:, -1:]
    both = torch.cat([frames, last], dim=1)
    return both


def window_partition(x: Tensor, window: int = 2) -> Tensor:
    batch, height, width, channels = x.shape
    windows = x.view(batch, height // window, window, width // window, window, channels)
    windows = windows.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window, window, channels)
    return windows


def first_of_each(x: Tensor, mask: Tensor) -> Tensor:
    position = mask.long().argmax(dim=1)
    rows = torch.arange(x.shape[0], device=x.device)
    chosen = x[rows, position]
    return chosen


def last_hidden(hidden: Tensor, ids: Tensor, pad: int = 0) -> Tensor:
    is_token = (ids != pad).to(torch.int32)
    index = (torch.arange(ids.shape[-1], device=ids.device) * is_token).argmax(-1)
    pooled = hidden[torch.arange(hidden.shape[0], device=hidden.device), index]
    return pooled


def merge_images(embedded: Tensor, ids: Tensor, features: Tensor, token: int = 1) -> Tensor:
    special = (ids == token).unsqueeze(-1).expand_as(embedded)
    merged = embedded.masked_scatter(special, features)
    return merged


def inside_image(points: Tensor, size: int = 4) -> Tensor:
    good = (points >= 0).all(-1) & (points < size).all(-1)
    index = torch.argwhere(good).squeeze(1)
    inside = points.index_select(0, index)
    return inside


# Added when everything above agreed, as a check


def early_exit(hidden: Tensor, confidence: Tensor, threshold: float = 0.5) -> Tensor:
    running = confidence < threshold
    active = hidden[running]
    refined = torch.tanh(active)
    out = hidden.clone()
    out[running] = refined
    return out


def soft_nms_weights(overlap: Tensor, scores: Tensor) -> Tensor:
    decay = torch.exp(-(overlap.triu(diagonal=1) ** 2) / 0.5)
    least = decay.min(dim=0).values
    kept = (scores * least).topk(3)
    return kept.values


def count_tokens(ids: Tensor, pad: int = 0) -> int:
    lengths = (ids != pad).sum(-1)
    longest = lengths.amax()
    return int(longest)


def pack_rows(x: Tensor, keep: Tensor) -> Tensor:
    order = torch.argsort(keep.int(), descending=True, stable=True)
    packed = torch.gather(x, 0, order[:, None].expand(-1, x.shape[1]))
    number = keep.sum()
    mask = torch.arange(x.shape[0], device=x.device) < number
    packed = packed * mask[:, None]
    return packed


def boundaries(labels: Tensor) -> Tensor:
    change = labels[1:] != labels[:-1]
    starts = torch.nonzero(change)[:, 0] + 1
    lengths = starts.diff()
    return lengths


def mixup(x: Tensor, weight: float = 0.3) -> Tensor:
    order = torch.randperm(x.size(0), device=x.device)
    mixed = weight * x + (1 - weight) * x[order]
    return mixed


def temperature_or_greedy(logits: Tensor, temperature: Tensor) -> Tensor:
    if temperature.item() == 0:
        token = logits.argmax(dim=-1, keepdim=True)
    else:
        token = torch.multinomial(torch.softmax(logits / temperature, -1), 1)
    return token


def moe_load(indices: Tensor, experts: int = 4) -> Tensor:
    chosen = F.one_hot(indices, experts).float()
    share = chosen.mean(dim=(0, 1))
    balance = (share * share).sum() * experts
    return balance


def classwise_precision(guess: Tensor, labels: Tensor, classes: int = 3) -> list:
    values = []
    for index in range(classes):
        of_class = guess == index
        hits = labels[of_class] == index
        values.append(hits.float().mean())
    return values


def outlier_free_mean(x: Tensor) -> Tensor:
    low, high = torch.quantile(x, torch.tensor([0.25, 0.75], device=x.device))
    inside = x[(x >= low) & (x <= high * x.std())]
    mean = inside.mean()
    return mean


# Tensors that grow, and batches padded to a multiple


def cache_of_known_steps(embedding: Tensor, ids: Tensor, steps: int = 3) -> Tensor:
    for _ in range(steps):
        logits = embedding[ids[:, -1]]
        token = logits.argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
    return ids


def cache_until_all_end(embedding: Tensor, ids: Tensor, end: int = 0) -> Tensor:
    cache = ids
    for _ in range(5):
        token = embedding[cache[:, -1]].argmax(dim=-1, keepdim=True)
        if (token == end).all():
            break
        cache = torch.cat([cache, token], dim=1)
    return cache


def sliding_cache(keys: Tensor, new: Tensor) -> Tensor:
    for step in range(4):
        keys = torch.cat([keys, new[:, step : step + 1]], dim=1)
        keys = keys[:, 1:]
    return keys


def cache_of_kept(keys: Tensor, scores: Tensor) -> Tensor:
    cache = keys[:0]
    for step in range(2):
        kept = keys[scores[step] > 0.5]
        cache = torch.cat([cache, kept])
    return cache


def padded_to_multiple(x: Tensor, scores: Tensor, multiple: int = 4) -> Tensor:
    kept = x[scores > 0.5]
    rest = -kept.shape[0] % multiple
    padded = F.pad(kept, (0, 0, 0, rest))
    return padded


def padded_to_most(x: Tensor, scores: Tensor, most: int = 16) -> Tensor:
    kept = x[scores > 0.5]
    padded = F.pad(kept, (0, 0, 0, most - kept.shape[0]))
    return padded


def batch_padded_to_multiple(x: Tensor, scores: Tensor, multiple: int = 4) -> Tensor:
    rows = [x[chances > 0.5] for chances in scores]
    batch = pad_sequence(rows, batch_first=True)
    batch = F.pad(batch, (0, 0, 0, -batch.shape[1] % multiple))
    return batch


def batch_of_windows(x: Tensor, starts: list[int], length: int = 4) -> Tensor:
    rows = [x[start : start + length] for start in starts]
    batch = pad_sequence(rows, batch_first=True)
    return batch


def keys_in_a_queue(queue: Tensor, pointer: Tensor, keys: Tensor) -> Tensor:
    start = int(pointer)
    batch_size = keys.shape[0]
    queue[:, start : start + batch_size] = keys.T
    newest = queue[:, start : batch_size + start]
    return newest

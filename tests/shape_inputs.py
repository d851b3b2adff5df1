"""Arguments for the functions of `shape_functions.py`: always the same shapes, other values."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Data:
    """Random tensors of one run."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self._generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self._generator)

    def bits(self, *shape: int) -> Tensor:
        return self.uniform(*shape) > 0.5

    def boxes(self, number: int) -> Tensor:
        corner = self.uniform(number, 2) * 4
        return torch.cat([corner, corner + self.uniform(number, 2) * 4], dim=1)

    def prefix_mask(self, rows: int, length: int) -> Tensor:
        """Of each row some ones, then zeros; in no run all ones."""
        return (torch.arange(length) < self.integers(1, length, rows, 1)).long()


Arguments = Callable[[Data], tuple[Any, ...]]
INPUTS: dict[str, Arguments] = {
    "masked_mean_loss": lambda d: (d.normal(4, 8), d.integers(0, 2, 4, 8) * 255),
    "weighted_mean_loss": lambda d: (d.normal(4, 8), d.integers(0, 2, 4, 8) * 255),
    "hard_negative_mining": lambda d: (d.uniform(32), (d.uniform(32) > 0.85).long()),
    "focal_loss": lambda d: (d.normal(4, 8), d.bits(4, 8).long()),
    "dice_score": lambda d: (d.normal(2, 4, 4), d.bits(2, 4, 4).float()),
    "top_one_accuracy": lambda d: (d.normal(8, 5), d.integers(0, 5, 8)),
    "accuracy_on_device": lambda d: (d.normal(8, 5), d.integers(0, 5, 8)),
    "confusion_matrix": lambda d: (d.integers(0, 4, 32), d.integers(-1, 5, 32)),
    "histogram_by_scatter": lambda d: (d.integers(0, 9, 32),),
    "contrastive_pairs": lambda d: (d.normal(8, 4), d.integers(0, 3, 8)),
    "contrastive_pairs_masked": lambda d: (d.normal(8, 4), d.integers(0, 3, 8)),
    "keys_in_a_queue": lambda d: (d.normal(4, 32), d.integers(0, 24, 1), d.normal(8, 4)),
    "perplexity": lambda d: (d.normal(2, 6, 11), d.integers(0, 11, 2, 6)),
    "smooth_l1_for_positives": lambda d: (d.normal(9, 4), d.normal(9, 4), d.bits(9).long()),
    "loss_if_any": lambda d: (d.normal(16), d.normal(16)),
    "ohem": lambda d: (d.uniform(4, 8),),
    "threshold_ohem": lambda d: (d.uniform(4, 8),),
    "filter_by_score": lambda d: (d.boxes(12), d.uniform(12)),
    "top_boxes": lambda d: (d.boxes(12), d.uniform(12)),
    "remove_small_boxes": lambda d: (d.boxes(12), 1.5),
    "box_iou": lambda d: (d.boxes(5), d.boxes(7)),
    "greedy_nms": lambda d: (d.boxes(12), d.uniform(12)),
    "assign_anchors": lambda d: (d.boxes(12), d.boxes(3)),
    "sample_anchors": lambda d: (d.integers(-1, 2, 10),),
    "decode_boxes": lambda d: (d.normal(6, 4), d.boxes(6)),
    "multi_level_boxes": lambda d: ([d.normal(8), d.normal(4)],),
    "flatten_levels": lambda d: ([d.normal(2, 3, 4), d.normal(2, 5)],),
    "points_in_boxes": lambda d: (d.uniform(9, 2) * 4, d.boxes(4)),
    "crop_by_mask": lambda d: (d.normal(3, 8, 8), (d.uniform(8, 8) > 0.9).float() + _corner(8)),
    "per_image_targets": lambda d: (
        torch.cat([d.integers(0, 3, 4, 1).float(), d.normal(4, 4)], dim=1),
    ),
    "pad_detections": lambda d: (d.boxes(12), d.uniform(12)),
    "Router": lambda d: (d.normal(2, 6, 8),),
    "DenseRouter": lambda d: (d.normal(2, 6, 8),),
    "HitRouter": lambda d: (d.normal(6, 8), d.integers(0, 3, 6, 2)),
    "grouped_tokens": lambda d: (d.normal(12, 4), d.integers(0, 4, 12)),
    "capacity_routing": lambda d: (d.normal(8, 4), d.normal(8, 3)),
    "repeat_by_count": lambda d: (d.normal(5, 4), d.integers(1, 5, 5)),
    "repeat_indices": lambda d: (d.integers(1, 5, 5),),
    "repeat_to_a_given_length": lambda d: (d.normal(5, 4), d.integers(1, 5, 5)),
    "repeat_to_a_length_of_the_data": lambda d: (d.normal(5, 4), d.integers(1, 5, 5)),
    "repeat_by_number": lambda d: (d.normal(5, 4),),
    "unpad": lambda d: (d.normal(3, 9, 4), d.prefix_mask(3, 9)),
    "pad_again": lambda d: (d.normal(5, 4), torch.tensor([0, 2, 3, 7, 11])),
    "split_by_lengths": lambda d: (d.normal(12, 4), _composition(d, 12)),
    "trim_to_longest": lambda d: (d.integers(0, 9, 3, 9), d.prefix_mask(3, 9)),
    "length_mask": lambda d: (d.integers(1, 12, 3),),
    "length_mask_of_known_size": lambda d: (d.integers(1, 12, 3),),
    "top_p_sampling": lambda d: (d.normal(2, 9),),
    "greedy_generation": lambda d: (d.normal(7, 5), d.integers(1, 7, 2, 3)),
    "static_cache": lambda d: (d.normal(2, 3, 4), d.normal(2, 8, 4), torch.tensor([3, 4, 5])),
    "speculative_accept": lambda d: (d.integers(0, 2, 1, 6), d.integers(0, 2, 1, 6)),
    "rejection_sampling": lambda d: (d.normal(16, 3),),
    "normalise_valid": lambda d: (d.normal(2, 5, 3), d.bits(2, 5)),
    "fill_missing": lambda d: (_with_missing(d, 4, 6),),
    "drop_missing": lambda d: (_with_missing(d, 4, 6),),
    "rows_without_missing": lambda d: (_with_missing(d, 8, 2),),
    "clip_if_large": lambda d: ([d.normal(4), d.normal(3)],),
    "clip_always": lambda d: ([d.normal(4), d.normal(3)],),
    "quantise": lambda d: (d.normal(4, 4),),
    "split_heads": lambda d: (d.normal(2, 5, 12),),
    "relative_index": lambda d: (5, d.normal(2)),
    "random_masking": lambda d: (d.normal(2, 8, 3),),
    "masked_tokens": lambda d: (d.normal(1, 8, 3), d.bits(1, 8).long()),
    "connected_pairs": lambda d: (d.integers(0, 9, 2, 6),),
    "segment_mean": lambda d: (d.normal(3, 3), d.integers(0, 6, 3)),
    "segment_mean_of_known_size": lambda d: (d.normal(9, 3), d.integers(0, 6, 9)),
    "running_total": lambda d: ([d.normal(3), d.normal(3)],),
    "running_total_on_device": lambda d: ([d.normal(3), d.normal(3)],),
    "report": lambda d: (d.normal(1).sum(), 3),
    "report_shape": lambda d: (d.normal(2, 3), 3),
    "to_host": lambda d: (d.normal(2, 3),),
    "until_converged": lambda d: (d.normal(3),),
    "same_tensors": lambda d: (d.normal(3), d.normal(3)),
    "loss_is_finite": lambda d: (d.normal(3).sum(),),
    "replace_not_finite": lambda d: (_with_missing(d, 3, 4),),
    "selected_through_a_helper": lambda d: (d.normal(16),),
    "gathered_through_a_helper": lambda d: (d.normal(16), torch.tensor([1, 3])),
    "kept_in_a_dictionary": lambda d: (d.normal(16), d.uniform(16)),
    "kept_by_condition": lambda d: (d.normal(16, 2), d.normal(16)),
    "by_list_of_indices": lambda d: (d.normal(6, 2),),
    "any_positive": lambda d: (d.normal(3),),
    "batch_of_kept": lambda d: (d.normal(3, 8, 2), d.uniform(3, 8)),
    "bounded_selection": lambda d: (d.normal(9, 2), d.uniform(9)),
    "one_hot_of_unknown_size": lambda d: (d.integers(0, 9, 4),),
    "one_hot_of_known_size": lambda d: (d.integers(0, 9, 4),),
    "distances": lambda d: (d.normal(5, 3),),
    "count_correct": lambda d: (d.normal(12, 3), d.integers(0, 3, 12)),
    "select_frames": lambda d: (d.normal(1, 7, 2), 2),
    "window_partition": lambda d: (d.normal(1, 4, 4, 2),),
    "first_of_each": lambda d: (d.normal(3, 5), d.bits(3, 5)),
    "last_hidden": lambda d: (d.normal(3, 5, 2), d.integers(0, 3, 3, 5)),
    "merge_images": lambda d: (d.normal(2, 5, 3), d.integers(0, 3, 2, 5), d.normal(10, 3)),
    "early_exit": lambda d: (d.normal(9, 3), d.uniform(9)),
    "soft_nms_weights": lambda d: (d.uniform(6, 6), d.uniform(6)),
    "count_tokens": lambda d: (d.integers(0, 3, 2, 7),),
    "pack_rows": lambda d: (d.normal(8, 3), d.bits(8)),
    "boundaries": lambda d: (d.integers(0, 3, 20),),
    "mixup": lambda d: (d.normal(6, 3),),
    "temperature_or_greedy": lambda d: (d.normal(2, 5), d.bits(1).float()),
    "moe_load": lambda d: (d.integers(0, 4, 6, 2),),
    "classwise_precision": lambda d: (d.integers(0, 3, 12), d.integers(0, 3, 12)),
    "outlier_free_mean": lambda d: (d.normal(24),),
    "inside_image": lambda d: (d.integers(-2, 6, 12, 2),),
    "cache_of_known_steps": lambda d: (d.normal(5, 5), d.integers(0, 5, 2, 3)),
    "cache_until_all_end": lambda d: (d.normal(4, 4), d.integers(0, 4, 1, 2)),
    "sliding_cache": lambda d: (d.normal(2, 6, 3), d.normal(2, 4, 3)),
    "cache_of_kept": lambda d: (d.normal(9, 3), d.uniform(2, 9)),
    "padded_to_multiple": lambda d: (d.normal(12, 3), d.uniform(12)),
    "padded_to_most": lambda d: (d.normal(12, 3), d.uniform(12)),
    "batch_padded_to_multiple": lambda d: (d.normal(12, 3), d.uniform(3, 12)),
    "batch_of_windows": lambda d: (d.normal(12, 3), [0, 3, 7]),
}


def _corner(size: int) -> Tensor:
    """Something is always there."""
    mask = torch.zeros(size, size)
    mask[size // 2, size // 2] = 1
    return mask


def _composition(data: Data, total: int) -> Tensor:
    """Three positive numbers with this sum."""
    first = int(data.integers(1, total - 2, 1))
    second = int(data.integers(1, total - first, 1))
    return torch.tensor([first, second, total - first - second])


def _with_missing(data: Data, *shape: int) -> Tensor:
    values = data.normal(*shape)
    values[data.uniform(*shape) > 0.8] = float("nan")
    values[0, 0] = 0.5
    return values

"""A one-stage detector: anchors, matching, masks and non-maximum suppression."""

import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CLASSES = 3
STRIDE = 8
SIZE = 64


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (box_area(a)[:, None] + box_area(b) - inter)


def nms(boxes, scores, threshold):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]])[0]
        order = order[1:][iou <= threshold]
    return torch.stack(keep) if keep else torch.zeros(0, dtype=torch.int64).cuda()


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )
        self.cls = nn.Conv2d(width, NUM_CLASSES, 3, padding=1)
        self.box = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, images):
        features = self.backbone(images)
        logits = self.cls(features).flatten(2).transpose(1, 2)
        deltas = self.box(features).flatten(2).transpose(1, 2)
        return logits, deltas


def make_anchors():
    steps = torch.arange(0, SIZE, STRIDE).cuda().float() + STRIDE / 2
    cy, cx = torch.meshgrid(steps, steps, indexing="ij")
    centers = torch.stack([cx, cy], dim=-1).reshape(-1, 2)
    return torch.cat([centers - STRIDE, centers + STRIDE], dim=1)


def encode(anchors, gt):
    size = anchors[:, 2:] - anchors[:, :2]
    center = (anchors[:, :2] + anchors[:, 2:]) / 2
    gt_size = gt[:, 2:] - gt[:, :2]
    gt_center = (gt[:, :2] + gt[:, 2:]) / 2
    return torch.cat([(gt_center - center) / size, torch.log(gt_size / size)], dim=1)


def decode(anchors, deltas):
    size = anchors[:, 2:] - anchors[:, :2]
    center = (anchors[:, :2] + anchors[:, 2:]) / 2 + deltas[:, :2] * size
    half = size * deltas[:, 2:].clamp(max=4).exp() / 2
    return torch.cat([center - half, center + half], dim=1)


def losses(logits, deltas, anchors, targets):
    cls_loss, box_loss, positives = 0.0, 0.0, 0
    for i, target in enumerate(targets):
        iou = box_iou(anchors, target["boxes"])
        best, index = iou.max(dim=1)
        positive = best > 0.3
        labels = torch.zeros_like(logits[i])
        labels[positive, target["labels"][index[positive]]] = 1.0
        cls_loss = cls_loss + F.binary_cross_entropy_with_logits(logits[i], labels, reduction="sum")
        fg = torch.nonzero(positive).squeeze(1)
        goal = encode(anchors[fg], target["boxes"][index[fg]])
        box_loss = box_loss + F.smooth_l1_loss(deltas[i][fg], goal, reduction="sum")
        positives += int(positive.sum())
    return (cls_loss + box_loss) / max(positives, 1)


def fake_batch(generator, batch=2):
    images, targets = torch.rand(batch, 3, SIZE, SIZE, generator=generator), []
    for _ in range(batch):
        count = int(torch.randint(1, 4, (1,), generator=generator))
        low = torch.rand(count, 2, generator=generator) * (SIZE - 24)
        size = 12 + torch.rand(count, 2, generator=generator) * 12
        labels = torch.randint(0, NUM_CLASSES, (count,), generator=generator)
        targets.append({"boxes": torch.cat([low, low + size], 1), "labels": labels})
    return images, targets


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(3)
    model = Detector().cuda().train()
    anchors = make_anchors()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(4):
        images, targets = fake_batch(generator)
        images = images.cuda()
        targets = [{k: v.cuda() for k, v in t.items()} for t in targets]
        loss = losses(*model(images), anchors, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if not torch.isfinite(loss):
            raise SystemExit("loss is not finite")
        print(step, loss.item())
        with torch.no_grad():
            logits, deltas = model(images)
            scores, labels = logits[0].sigmoid().max(dim=1)
            mask = scores > 0.05
            boxes = decode(anchors[mask], deltas[0][mask])
            kept = nms(boxes, scores[mask], 0.5)
            print("kept", len(kept), labels[mask][kept].bincount(minlength=NUM_CLASSES).tolist())


if __name__ == "__main__":
    main()

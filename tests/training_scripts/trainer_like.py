"""A trainer class in the manner of the large libraries."""

import contextlib
import os
import random
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler


def set_seed(seed: int):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


@dataclass
class TrainingArguments:
    output_dir: str = "trainer_output"
    learning_rate: float = 2e-3
    per_device_train_batch_size: int = 4
    num_train_epochs: int = 1
    gradient_accumulation_steps: int = 1
    max_grad_norm: float = 1.0
    warmup_steps: int = 1
    save_steps: int = 2
    seed: int = 42
    bf16: bool = True
    no_cuda: bool = False
    local_rank: int = field(default_factory=lambda: int(os.environ.get("LOCAL_RANK", -1)))
    _n_gpu: int = field(init=False, default=-1)

    def __post_init__(self):
        self._device = self._setup_devices()
        if self.bf16 and self.device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise ValueError("Your setup doesn't support bf16/gpu.")

    def _setup_devices(self) -> "torch.device":
        if self.no_cuda:
            device = torch.device("cpu")
            self._n_gpu = 0
        elif self.local_rank == -1:
            device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
            self._n_gpu = torch.cuda.device_count()
        else:
            device = torch.device("cuda", self.local_rank)
            self._n_gpu = 1
        if device.type == "cuda":
            torch.cuda.set_device(device)
        return device

    @property
    def device(self) -> "torch.device":
        return self._device

    @property
    def n_gpu(self):
        return self._n_gpu

    @property
    def train_batch_size(self) -> int:
        return self.per_device_train_batch_size * max(1, self.n_gpu)


class BertLikeModel(nn.Module):
    def __init__(self, vocab=50, hidden=32, labels=3):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, hidden, padding_idx=0)
        layer = nn.TransformerEncoderLayer(hidden, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(hidden, labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        padding = attention_mask == 0
        hidden = self.encoder(self.embeddings(input_ids), src_key_padding_mask=padding)
        logits = self.classifier(hidden[:, 0])
        loss = F.cross_entropy(logits.float(), labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


@dataclass
class DataCollatorWithPadding:
    pad_token_id: int = 0
    max_length: Optional[int] = 12

    def __call__(self, features: List[Dict]) -> Dict[str, torch.Tensor]:
        ids = [f["input_ids"][: self.max_length] for f in features]
        padded = [i + [self.pad_token_id] * (self.max_length - len(i)) for i in ids]
        batch = {"input_ids": torch.tensor(padded)}
        batch["attention_mask"] = (batch["input_ids"] != self.pad_token_id).long()
        batch["labels"] = torch.tensor([f["label"] for f in features])
        return batch


class Trainer:
    def __init__(self, model, args, train_dataset, data_collator):
        self.args = args
        set_seed(args.seed)
        self.model = model.to(args.device)
        self.train_dataset, self.data_collator = train_dataset, data_collator
        if args.n_gpu > 1:
            self.model = nn.DataParallel(self.model)

    def get_train_dataloader(self):
        generator = torch.Generator()
        generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
        sampler = RandomSampler(self.train_dataset, generator=generator)
        return DataLoader(
            self.train_dataset,
            batch_size=self.args.train_batch_size,
            sampler=sampler,
            collate_fn=self.data_collator,
            pin_memory=True,
        )

    def autocast_smart_context_manager(self):
        if self.args.bf16 and self.args.device.type == "cuda":
            return torch.cuda.amp.autocast(dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def _prepare_inputs(self, inputs):
        return {k: v.to(self.args.device, non_blocking=True) for k, v in inputs.items()}

    def training_step(self, inputs):
        self.model.train()
        inputs = self._prepare_inputs(inputs)
        with self.autocast_smart_context_manager():
            loss = self.model(**inputs)["loss"]
        if self.args.n_gpu > 1:
            loss = loss.mean()
        loss = loss / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def _save_checkpoint(self, step, optimizer):
        folder = os.path.join(self.args.output_dir, f"checkpoint-{step}")
        os.makedirs(folder, exist_ok=True)
        torch.save(self.model.state_dict(), os.path.join(folder, "pytorch_model.bin"))
        torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
        rng_states = {"python": random.getstate(), "cpu": torch.random.get_rng_state()}
        if torch.cuda.is_available():
            if self.args.local_rank == -1:
                rng_states["cuda"] = torch.cuda.random.get_rng_state_all()
            else:
                rng_states["cuda"] = torch.cuda.random.get_rng_state()
        torch.save(rng_states, os.path.join(folder, "rng_state.pth"))

    def train(self):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda s: min(1.0, (s + 1) / (self.args.warmup_steps + 1))
        )
        tr_loss = torch.tensor(0.0).to(self.args.device)
        step = 0
        for _ in range(self.args.num_train_epochs):
            for inputs in self.get_train_dataloader():
                tr_loss += self.training_step(inputs)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                self.model.zero_grad()
                step += 1
                if step % self.args.save_steps == 0:
                    self._save_checkpoint(step, optimizer)
                print({"loss": tr_loss.item() / step, "lr": scheduler.get_last_lr()[0]})
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    rng = random.Random(0)
    examples = [
        {"input_ids": [rng.randrange(1, 50) for _ in range(rng.randrange(4, 14))], "label": i % 3}
        for i in range(20)
    ]
    set_seed(42)
    Trainer(BertLikeModel(), TrainingArguments(), examples, DataCollatorWithPadding()).train()

"""Loaders in a dictionary, one loop for both phases, as in PyTorch's lesson on transfer."""

import copy
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = int(os.environ.get("BATCH", "16"))
torch.manual_seed(2)
x = torch.randn(96, 5)
datasets = {
    "train": TensorDataset(x[:64], (x[:64].sum(1) > 0).long()),
    "val": TensorDataset(x[64:], (x[64:].sum(1) > 0).long()),
}
dataloaders = {
    phase: DataLoader(datasets[phase], batch_size=BATCH, shuffle=True) for phase in ["train", "val"]
}
dataset_sizes = {phase: len(datasets[phase]) for phase in ["train", "val"]}
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def train_model(model, criterion, optimizer, scheduler, num_epochs=2):
    best_weights = copy.deepcopy(model.state_dict())
    best_accuracy = 0.0
    figures = []
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss = 0.0
            running_corrects = 0
            for inputs, labels in dataloaders[phase]:
                inputs = inputs.to(device)
                labels = labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == "train":
                scheduler.step()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_accuracy = running_corrects.double() / dataset_sizes[phase]
            figures += [epoch_loss, epoch_accuracy.item()]
            if phase == "val" and epoch_accuracy > best_accuracy:
                best_accuracy = epoch_accuracy
                best_weights = copy.deepcopy(model.state_dict())
    torch.save({"best": best_weights, "figures": torch.tensor(figures)}, "best.pt")
    return model


model_ft = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
model_ft.add_module("fc", nn.Linear(8, 2))
model_ft = model_ft.to(device)
criterion = nn.CrossEntropyLoss()
optimizer_ft = torch.optim.SGD(model_ft.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer_ft, step_size=1, gamma=0.5)
model_ft = train_model(model_ft, criterion, optimizer_ft, scheduler)
torch.save(model_ft.state_dict(), "end.pt")

import copy

import torch


def fit(model, loaders, criterion, optimizer, scheduler, epochs):
    device = next(model.parameters()).device
    best, best_loss, history = copy.deepcopy(model.state_dict()), 1e9, []
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            running_loss, count = 0.0, 0
            for inputs, labels in loaders[phase]:
                inputs, labels = inputs.to(device), labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = criterion(model(inputs), labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                count += inputs.size(0)
            if phase == "train":
                scheduler.step()
            history.append(running_loss / count)
            if phase == "val" and history[-1] < best_loss:
                best_loss = history[-1]
                best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return model, history

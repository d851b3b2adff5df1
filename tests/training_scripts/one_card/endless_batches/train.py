"""Steps take batches of an iterator without an end, which a function of another file makes."""

import torch
from data import batches
from torch import nn


def evaluate(model, data):
    with torch.no_grad():
        return model(next(data)[0].cuda()).abs().mean().item()


def main():
    torch.manual_seed(2)
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_data = batches("train")
    test_data = batches("test")
    for epoch in range(2):
        for _ in range(4):
            (x,) = next(train_data)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.cuda()), x.cuda()).backward()
            optimizer.step()
        for (x,) in test_data:
            print(model(x.cuda()).mean().item())
            break
        print(evaluate(model, test_data))
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()

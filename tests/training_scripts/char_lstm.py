"""A character language model with an LSTM."""

import math
import random

import torch
import torch.nn as nn
from torch.autograd import Variable

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps on in the sun. " * 8
CHARS = sorted(set(TEXT))
INDEX = {c: i for i, c in enumerate(CHARS)}
SEQUENCE, BATCH = 16, 4

torch.manual_seed(11)
random.seed(11)
if torch.cuda.is_available():
    torch.cuda.manual_seed(11)


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden=32, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.encoder = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.LSTM(hidden, hidden, layers, dropout=0.1)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(output.view(-1, self.hidden)), hidden

    def init_hidden(self, batch):
        return (
            Variable(torch.zeros(self.layers, batch, self.hidden).cuda()),
            Variable(torch.zeros(self.layers, batch, self.hidden).cuda()),
        )


def random_batch():
    starts = [random.randrange(len(TEXT) - SEQUENCE - 1) for _ in range(BATCH)]
    chunk = torch.LongTensor([[INDEX[c] for c in TEXT[s : s + SEQUENCE + 1]] for s in starts])
    inputs, targets = chunk[:, :-1].t().contiguous(), chunk[:, 1:].t().contiguous()
    return Variable(inputs.cuda()), Variable(targets.view(-1).cuda())


def repackage(hidden):
    return tuple(h.detach() for h in hidden)


def generate(model, start="the ", length=20):
    model.eval()
    with torch.no_grad():
        hidden = model.init_hidden(1)
        x = torch.tensor([[INDEX[c]] for c in start], device="cuda")
        out, hidden = model(x, hidden)
        text = start
        for _ in range(length):
            best = out[-1].argmax()
            text += CHARS[best.item()]
            out, hidden = model(best.view(1, 1), hidden)
    model.train()
    return text


model = CharRNN(len(CHARS)).cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
hidden = model.init_hidden(BATCH)
total = torch.cuda.FloatTensor([0.0])
for step in range(5):
    inputs, targets = random_batch()
    hidden = repackage(hidden)
    output, hidden = model(inputs, hidden)
    loss = criterion(output, targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    total += loss.data
    print(f"step {step} loss {loss.item():.4f} ppl {math.exp(min(loss.item(), 20)):.2f}")
print(total.cpu().numpy(), generate(model))
torch.save(model.cpu().state_dict(), "char_rnn.pt")

"""Actor-critic on a little cart-pole of its own."""

import math
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
GAMMA = 0.99


class CartPole:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        return list(self.state)

    def step(self, action):
        x, v, angle, speed = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        temp = (force + 0.05 * speed**2 * sin) / 1.1
        angle_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        acc = temp - 0.05 * angle_acc * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * acc, angle + 0.02 * speed, speed + 0.02 * angle_acc]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return list(self.state), 1.0, done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return F.softmax(self.actor(h), dim=-1), self.critic(h)


class ReplayBuffer:
    def __init__(self, size=500):
        self.items = deque(maxlen=size)

    def push(self, state, value):
        self.items.append((state, value))

    def sample(self, count):
        states, values = zip(*random.sample(list(self.items), count))
        return torch.FloatTensor(states).to(device), torch.FloatTensor(values).to(device)


def main():
    random.seed(9)
    torch.manual_seed(9)
    torch.cuda.manual_seed_all(9)
    torch.backends.cudnn.deterministic = True
    env, model, buffer = CartPole(9), ActorCritic().to(device), ReplayBuffer()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    for episode in range(4):
        state, log_probs, values, rewards, states = env.reset(), [], [], [], []
        for _ in range(20):
            observation = torch.tensor(state, dtype=torch.float32, device=device)
            probs, value = model(observation)
            distribution = Categorical(probs)
            action = distribution.sample()
            states.append(state)
            state, reward, done = env.step(action.item())
            log_probs.append(distribution.log_prob(action))
            values.append(value)
            rewards.append(reward)
            if done:
                break
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + GAMMA * total
            returns.insert(0, total)
        returns = torch.tensor(returns).cuda()
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        log_probs, values = torch.stack(log_probs), torch.cat(values)
        advantage = returns - values.detach()
        loss = -(log_probs * advantage).mean() + F.smooth_l1_loss(values, returns)
        optimizer.zero_grad()
        loss.backward()
        for param in model.parameters():
            param.grad.data.clamp_(-1, 1)
        optimizer.step()
        for item in zip(states, returns.tolist()):
            buffer.push(*item)
        old_states, old_returns = buffer.sample(4)
        error = (model(old_states)[1].squeeze(1) - old_returns).abs().mean()
        print(f"episode {episode} length {len(rewards)} loss {loss.item():.4f} replay {error:.3f}")


if __name__ == "__main__":
    main()

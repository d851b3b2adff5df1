"""Models of many kinds, on which symbolic shapes are compared with those of a run."""

GPT = """
    import math
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Attention(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
            self.c_proj = nn.Linear(config.n_embd, config.n_embd)
            self.n_head = config.n_head
            self.n_embd = config.n_embd
            self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
            k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = F.softmax(att, dim=-1)
            y = att @ v
            y = y.transpose(1, 2).contiguous().view(B, T, C)
            y = self.c_proj(y)
            return y


    class Block(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.ln = nn.LayerNorm(config.n_embd)
            self.attn = Attention(config)
            self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
            self.c_out = nn.Linear(4 * config.n_embd, config.n_embd)

        def forward(self, x):
            x = x + self.attn(self.ln(x))
            hidden = self.c_fc(x)
            hidden = F.gelu(hidden)
            x = x + self.c_out(hidden)
            return x


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.wte = nn.Embedding(config.vocab_size, config.n_embd)
            self.wpe = nn.Embedding(64, config.n_embd)
            self.blocks = nn.ModuleList([Block(config) for _ in range(2)])
            self.head = nn.Linear(config.n_embd, config.vocab_size)

        def forward(self, ids):
            b, t = ids.size()
            positions = torch.arange(0, t)
            tokens = self.wte(ids)
            places = self.wpe(positions)
            x = tokens + places
            for block in self.blocks:
                x = block(x)
            logits = self.head(x)
            last = logits[:, -1, :]
            chances = F.softmax(last, dim=-1)
            return logits, chances
"""
LLAMA = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    def repeat_kv(x, n_rep):
        bs, slen, n_kv, width = x.shape
        x = x[:, :, :, None, :].expand(bs, slen, n_kv, n_rep, width)
        return x.reshape(bs, slen, n_kv * n_rep, width)


    class Attention(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.heads, self.kv_heads = config.n_head, config.n_head // 2
            self.n_rep = 2
            self.head_dim = config.n_embd // config.n_head
            self.wq = nn.Linear(config.n_embd, self.heads * self.head_dim, bias=False)
            self.wk = nn.Linear(config.n_embd, self.kv_heads * self.head_dim, bias=False)
            self.wv = nn.Linear(config.n_embd, self.kv_heads * self.head_dim, bias=False)
            self.wo = nn.Linear(self.heads * self.head_dim, config.n_embd, bias=False)

        def forward(self, x):
            bsz, seqlen, _ = x.shape
            xq, xk, xv = self.wq(x), self.wk(x), self.wv(x)
            xq = xq.view(bsz, seqlen, self.heads, self.head_dim)
            xk = xk.view(bsz, seqlen, self.kv_heads, self.head_dim)
            xv = xv.view(bsz, seqlen, self.kv_heads, self.head_dim)
            keys = repeat_kv(xk, self.n_rep)
            values = repeat_kv(xv, self.n_rep)
            xq = xq.transpose(1, 2)
            keys = keys.transpose(1, 2)
            values = values.transpose(1, 2)
            scores = torch.matmul(xq, keys.transpose(2, 3))
            mask = torch.full((seqlen, seqlen), float("-inf"))
            mask = torch.triu(mask, diagonal=1)
            scores = scores + mask
            scores = F.softmax(scores.float(), dim=-1)
            output = torch.matmul(scores, values)
            output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
            output = self.wo(output)
            return output


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.embed = nn.Embedding(config.vocab_size, config.n_embd)
            self.attention = Attention(config)
            self.w1 = nn.Linear(config.n_embd, 4 * config.n_embd)
            self.w3 = nn.Linear(config.n_embd, 4 * config.n_embd)
            self.w2 = nn.Linear(4 * config.n_embd, config.n_embd)

        def forward(self, ids):
            h = self.embed(ids)
            h = h + self.attention(h)
            gate = F.silu(self.w1(h))
            up = self.w3(h)
            h = self.w2(gate * up)
            return h
"""
VIT = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.patch = nn.Conv2d(3, config.n_embd, kernel_size=4, stride=4)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, config.n_embd))
            self.qkv = nn.Linear(config.n_embd, config.n_embd * 3)
            self.num_heads = config.n_head
            self.proj = nn.Linear(config.n_embd, config.n_embd)
            self.norm = nn.LayerNorm(config.n_embd)
            self.head = nn.Linear(config.n_embd, 10)

        def attend(self, x):
            B, N, C = x.shape
            qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
            qkv = qkv.permute(2, 0, 3, 1, 4)
            q, k, v = qkv[0], qkv[1], qkv[2]
            attn = q @ k.transpose(-2, -1)
            attn = attn.softmax(dim=-1)
            x = (attn @ v).transpose(1, 2).reshape(B, N, C)
            x = self.proj(x)
            return x

        def forward(self, images):
            x = self.patch(images)
            x = x.flatten(2).transpose(1, 2)
            B = x.shape[0]
            token = self.cls_token.expand(B, -1, -1)
            x = torch.cat((token, x), dim=1)
            normed = self.norm(x)
            x = x + self.attend(normed)
            pooled = x[:, 0]
            logits = self.head(pooled)
            scores = logits.softmax(-1)
            best = scores.argmax(-1)
            rows = torch.ones(B, 5)
            columns = rows.transpose(0, 1)
            squares = columns @ rows
            return logits, best, squares
"""
DIFFUSION = """
    import math
    import torch
    import torch.nn.functional as F
    from torch import nn


    class TimeEmbedding(nn.Module):
        def __init__(self, hidden_size, frequency_size=32):
            super().__init__()
            self.first = nn.Linear(frequency_size, hidden_size)
            self.second = nn.Linear(hidden_size, hidden_size)
            self.frequency_size = frequency_size

        def forward(self, t):
            half = self.frequency_size // 2
            freqs = torch.exp(-math.log(10000) * torch.arange(half) / half)
            args = t[:, None].float() * freqs[None]
            embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
            embedding = F.silu(self.first(embedding))
            embedding = self.second(embedding)
            return embedding


    class ResBlock(nn.Module):
        def __init__(self, channels, out_channels, emb_channels):
            super().__init__()
            self.norm = nn.GroupNorm(4, channels)
            self.conv_in = nn.Conv2d(channels, out_channels, 3, padding=1)
            self.emb = nn.Linear(emb_channels, out_channels)
            self.conv_out = nn.Conv2d(out_channels, out_channels, 3, padding=1)
            self.skip = nn.Conv2d(channels, out_channels, 1)

        def forward(self, x, emb):
            b, c, height, width = x.shape
            h = self.norm(x)
            h = F.silu(h)
            h = self.conv_in(h)
            emb_out = self.emb(F.silu(emb))
            h = h + emb_out[:, :, None, None]
            h = self.conv_out(h)
            skipped = self.skip(x)
            return skipped + h


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.time = TimeEmbedding(config.n_embd)
            self.stem = nn.Conv2d(3, 16, 3, padding=1)
            self.block = ResBlock(16, 32, config.n_embd)
            self.out = nn.Conv2d(32, 3, 3, padding=1)

        def forward(self, x, t):
            emb = self.time(t)
            h = self.stem(x)
            h = self.block(h, emb)
            noise = self.out(h)
            error = (noise - x) ** 2
            loss = error.mean(dim=(1, 2, 3))
            return noise, loss
"""
VOCODER = """
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.utils import weight_norm


    class Period(nn.Module):
        def __init__(self, period):
            super().__init__()
            self.period = period
            self.convs = nn.ModuleList([nn.Conv2d(1, 8, (5, 1)), nn.Conv2d(8, 16, (5, 1))])
            self.post = nn.Conv2d(16, 1, (3, 1), padding=(1, 0))

        def forward(self, x):
            b, c, t = x.shape
            if t % self.period != 0:
                n_pad = self.period - (t % self.period)
                x = F.pad(x, (0, n_pad), "reflect")
                t = t + n_pad
            x = x.view(b, c, t // self.period, self.period)
            for conv in self.convs:
                x = conv(x)
                x = F.leaky_relu(x, 0.1)
            x = self.post(x)
            flat = torch.flatten(x, 1, -1)
            return flat


    class Residual(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.first = weight_norm(nn.Conv1d(channels, channels, 3, padding=1))
            self.second = weight_norm(nn.Conv1d(channels, channels, 3, padding=1))

        def forward(self, x):
            y = F.leaky_relu(x, 0.1)
            y = self.first(y)
            y = F.leaky_relu(y, 0.1)
            y = self.second(y)
            x = x + y
            return x


    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.narrow, self.wide = Residual(4), Residual(12)

        def forward(self, x):
            first = self.narrow(x[:, :4])
            second = self.wide(x[:, 4:])
            return torch.cat([first, second], dim=1)


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.pre = weight_norm(nn.Conv1d(8, config.n_embd, 7, padding=3))
            self.up = weight_norm(nn.ConvTranspose1d(config.n_embd, 16, 4, 2, 1))
            self.residual = Residual(16)
            self.twice = Twice()
            self.post = weight_norm(nn.Conv1d(16, 1, 7, padding=3))
            self.judge = Period(3)

        def forward(self, mels):
            x = self.pre(mels)
            x = F.leaky_relu(x, 0.1)
            x = self.up(x)
            x = self.residual(x)
            x = self.twice(x)
            wave = torch.tanh(self.post(x))
            folded = wave.view(wave.size(0), -1, 2)
            power = folded.pow(2).mean(dim=-1)
            louder = torch.log(power + 1.0)
            quiet = torch.zeros(3, 4)
            score = self.judge(wave)
            return wave, score, louder
"""
TAGGER = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.words = nn.Embedding(config.vocab_size, config.n_embd)
            self.characters = nn.Embedding(30, 12)
            self.convolution = nn.Conv1d(12, 20, 3, padding=1)
            self.forget = nn.Linear(config.n_embd + 20, 64)
            self.tags = nn.Linear(64, config.n_head)

        def forward(self, ids, spelled):
            batch, length, letters = spelled.shape
            words = self.words(ids)
            flat = spelled.view(batch * length, letters)
            spelled = self.characters(flat)
            spelled = spelled.transpose(1, 2)
            spelled = self.convolution(spelled)
            pooled, places = spelled.max(dim=-1)
            pooled = pooled.view(batch, length, -1)
            joined = torch.cat([words, pooled], dim=-1)
            hidden = torch.tanh(self.forget(joined))
            emissions = self.tags(hidden)
            alpha = emissions[:, 0]
            total = alpha.logsumexp(dim=-1)
            best = emissions.argmax(dim=-1)
            ones = torch.ones(batch, length)
            sums = (ones * best).sum(dim=1)
            return emissions, total, sums
"""
AUTOENCODER = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.down = nn.Conv2d(3, 16, 4, 2, 1)
            self.deeper = nn.Conv2d(16, config.n_embd, 4, 2, 1)
            self.mean = nn.Conv2d(config.n_embd, 8, 1)
            self.spread = nn.Conv2d(config.n_embd, 8, 1)
            self.widen = nn.Conv2d(8, config.n_embd, 1)
            self.up = nn.ConvTranspose2d(config.n_embd, 16, 4, 2, 1)
            self.out = nn.ConvTranspose2d(16, 3, 4, 2, 1)
            self.codes = nn.Embedding(32, 8)

        def forward(self, x):
            h = F.relu(self.down(x))
            h = F.relu(self.deeper(h))
            mean = self.mean(h)
            spread = self.spread(h)
            std = torch.exp(0.5 * spread)
            z = mean + std * torch.randn_like(std)
            b, c, height, width = z.shape
            flat = z.permute(0, 2, 3, 1).reshape(b * height * width, c)
            weights = self.codes.weight
            products = flat @ weights.t()
            nearest = products.argmax(dim=-1)
            found = self.codes(nearest)
            z = found.view(b, height, width, c).permute(0, 3, 1, 2)
            h = F.relu(self.widen(z))
            h = F.relu(self.up(h))
            image = self.out(h)
            error = F.mse_loss(image, x, reduction="none")
            chances = F.softmax(products, dim=-1)
            ones = torch.ones(b, c)
            rows = ones.sum(dim=1)
            columns = ones.unsqueeze(-1).expand(b, c, width)
            return image, error, chances, rows, columns
"""
GRAPH = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Layer(nn.Module):
        def __init__(self, in_features, out_features, heads):
            super().__init__()
            self.heads, self.out_features = heads, out_features
            self.w = nn.Linear(in_features, heads * out_features, bias=False)
            self.score = nn.Linear(out_features, 1)

        def forward(self, h, adj):
            N, width = h.shape
            wh = self.w(h)
            wh = wh.view(N, self.heads, self.out_features)
            wh = wh.transpose(0, 1)
            logits = self.score(wh)
            pairs = logits + logits.transpose(1, 2)
            pairs = F.leaky_relu(pairs, 0.2)
            pairs = pairs.masked_fill(adj == 0, -9e15)
            attention = F.softmax(pairs, dim=-1)
            mixed = torch.matmul(attention, wh)
            mixed = mixed.transpose(0, 1)
            mixed = mixed.reshape(N, self.heads * self.out_features)
            return mixed


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.first = Layer(6, 8, config.n_head)
            self.out = nn.Linear(8 * config.n_head, 5)

        def forward(self, x, adj):
            N = adj.size(0)
            degrees = adj.sum(dim=1)
            scaled = adj / degrees.unsqueeze(1)
            smooth = scaled @ x
            h = self.first(smooth, adj)
            h = F.elu(h)
            logits = self.out(h)
            eye = torch.eye(N)
            same = eye @ logits
            return logits, same
"""
DETECTOR = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.backbone = nn.Conv2d(3, 16, 3, stride=8, padding=1)
            self.lateral = nn.Conv2d(16, config.n_embd, 1)
            self.boxes = nn.Conv2d(config.n_embd, 4 * 3, 1)
            self.classes = nn.Conv2d(config.n_embd, 3 * 7, 1)
            self.num_anchors, self.num_classes = 3, 7

        def forward(self, images):
            features = F.relu(self.backbone(images))
            features = self.lateral(features)
            boxes = self.boxes(features)
            logits = self.classes(features)
            bs, channels, ny, nx = boxes.shape
            boxes = boxes.view(bs, self.num_anchors, 4, ny, nx)
            boxes = boxes.permute(0, 3, 4, 1, 2).contiguous()
            boxes = boxes.view(bs, -1, 4)
            logits = logits.view(bs, self.num_anchors, self.num_classes, ny, nx)
            logits = logits.permute(0, 3, 4, 1, 2).reshape(bs, -1, self.num_classes)
            scores, labels = logits.sigmoid().max(dim=-1)
            top, order = scores.topk(5, dim=1)
            chosen = torch.gather(labels, 1, order)
            index = order.unsqueeze(-1).expand(bs, 5, 4)
            kept = torch.gather(boxes, 1, index)
            sides = kept[..., 2:] - kept[..., :2]
            areas = sides.prod(dim=-1)
            return kept, chosen, areas
"""
ACTOR = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Critic(nn.Module):
        def __init__(self, state_dim, action_dim, hidden=32):
            super().__init__()
            self.first = nn.Linear(state_dim + action_dim, hidden)
            self.second = nn.Linear(hidden, hidden)
            self.value = nn.Linear(hidden, 1)

        def forward(self, state, action):
            both = torch.cat([state, action], dim=1)
            q = F.relu(self.first(both))
            q = F.relu(self.second(q))
            q = self.value(q)
            return q


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.body = nn.Linear(11, config.n_embd)
            self.mean = nn.Linear(config.n_embd, config.n_head)
            self.spread = nn.Linear(config.n_embd, config.n_head)
            self.critic = Critic(11, config.n_head)

        def forward(self, states, rewards):
            batch, width = states.shape
            h = torch.tanh(self.body(states))
            mean = self.mean(h)
            spread = self.spread(h).clamp(-20, 2)
            std = spread.exp()
            noise = torch.randn(batch, std.shape[1])
            action = torch.tanh(mean + std * noise)
            density = -0.5 * noise.pow(2)
            density = density.sum(dim=1, keepdim=True)
            q = self.critic(states, action)
            target = rewards.view(batch, 1) + 0.99 * q
            advantage = target - q
            loss = (density * advantage).mean()
            steps = torch.zeros(batch, 3)
            first = steps[:, 0]
            outer = first.unsqueeze(1) @ first.unsqueeze(0)
            scaled = outer / batch
            weights = F.softmax(scaled, dim=-1)
            mixed = weights @ states
            return loss, action, mixed
"""

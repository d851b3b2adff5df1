class Solver:
    def __init__(self, loader, epochs):
        self.loader = loader
        self.epochs = epochs
        self.build()

    def build(self):
        raise NotImplementedError

    def train(self):
        for epoch in range(self.epochs):
            for (real,) in self.loader:
                self.step(real)

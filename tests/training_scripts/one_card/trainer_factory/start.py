"""The model names the class of its trainer; its base class, in a package, has the loop."""

import torch
from work.data import get_data
from work.models import Regression

torch.manual_seed(7)
model = Regression()
trainer_class = model.get_trainer()
trainer = trainer_class(model, get_data(), {"epochs": 3, "lr": 0.05})
trainer.train()
trainer.save("end.pt")

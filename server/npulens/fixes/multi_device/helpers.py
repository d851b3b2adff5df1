"""Functions that a script is given which needs them, as text."""

from npulens.fixes.scripts import Cards

LOADER = '''\
def loader_of_process(loader):
    """The loader, made anew for the share of this process."""
    options = {
        name: getattr(loader, name)
        for name in (
            "batch_size",
            "num_workers",
            "collate_fn",
            "pin_memory",
            "drop_last",
            "timeout",
            "worker_init_fn",
            "generator",
            "persistent_workers",
        )
    }
    if loader.num_workers > 0:
        options["prefetch_factor"] = loader.prefetch_factor
    data = torch.utils.data
    shuffle = isinstance(loader.sampler, data.RandomSampler)
    if not shuffle and not isinstance(loader.sampler, data.SequentialSampler):
        raise TypeError(f"{type(loader.sampler).__name__} cannot be divided among processes")
    sampler = data.distributed.DistributedSampler(loader.dataset, shuffle=shuffle)
    return data.DataLoader(loader.dataset, sampler=sampler, **options)
'''


def figure_helper(cards: Cards) -> str:
    """Adds a figure up over the processes; a number stays one, a tensor stays on its device."""
    return f'''\
def over_processes(figure, mean=False):
    """The sum of a figure of every process, or their mean."""
    total = torch.as_tensor(figure).detach().to({cards.current}, torch.float32)
    torch.distributed.all_reduce(total)
    if mean:
        total = total / torch.distributed.get_world_size()
    if isinstance(figure, torch.Tensor):
        return total.to(figure.device) if mean else total.to(figure)
    return type(figure)(total.item()) if isinstance(figure, int) and not mean else total.item()
'''


def agreement_helper(cards: Cards) -> str:
    """Lets all processes decide alike."""
    return f'''\
def in_any_process(condition):
    """Whether something holds in at least one process."""
    found = torch.as_tensor(bool(condition)).to({cards.current}, torch.float32)
    torch.distributed.all_reduce(found)
    return found.item() > 0
'''

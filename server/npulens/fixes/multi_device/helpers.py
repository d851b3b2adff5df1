"""Functions that a file is given which needs them, as text.

Without other processes they change nothing: a module may be run by other scripts.
"""

from npulens.fixes.scripts import Cards

LOADER = '''\
class SamplerOfProcess(torch.utils.data.Sampler):
    """The share of this process in what another sampler draws, in the first process for all."""

    epoch = 0

    def __init__(self, sampler):
        self.sampler = sampler

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.sampler) // torch.distributed.get_world_size())

    def __iter__(self):
        drawn = [list(self.sampler)]
        torch.distributed.broadcast_object_list(drawn)
        count, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
        indices = drawn[0] + drawn[0][: -len(drawn[0]) % count]
        return iter(indices[rank::count])


class ShareOfProcess(torch.utils.data.IterableDataset):
    """The share of this process in what a dataset yields, the same number in all of them."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        count, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
        turn = []
        for sample in self.dataset:
            turn.append(sample)
            if len(turn) == count:
                yield turn[rank]
                turn = []


def batches_of_process(batches):
    """The share of this process in the batches of an iterator, which has the same in all."""
    return iter(ShareOfProcess(batches))


def loader_of_process(loader):
    """The loader, made anew for the share of this process."""
    if not torch.distributed.is_initialized():
        return loader
    if hasattr(loader, "__next__"):
        return batches_of_process(loader)
    data = torch.utils.data
    iterates = getattr(type(loader), "__iter__", None)
    if iterates is not data.DataLoader.__iter__:
        raise TypeError(f"no plain DataLoader, which processes cannot share: {type(loader)}")
    names = ["num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator"]
    names += ["persistent_workers", *(["prefetch_factor"] if loader.num_workers else [])]
    options = {name: getattr(loader, name) for name in names}
    if isinstance(loader.dataset, data.IterableDataset):
        options.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
        return data.DataLoader(ShareOfProcess(loader.dataset), **options)
    if type(loader.batch_sampler) not in (data.BatchSampler, type(None)):
        options["batch_sampler"] = SamplerOfProcess(loader.batch_sampler)
        return data.DataLoader(loader.dataset, **options)
    shuffles = isinstance(loader.sampler, data.RandomSampler) and not loader.sampler.replacement
    if shuffles or isinstance(loader.sampler, data.SequentialSampler):
        distributed = data.distributed.DistributedSampler
        options["sampler"] = distributed(loader.dataset, shuffle=shuffles)
    else:
        options["sampler"] = SamplerOfProcess(loader.sampler)
    size, drop = loader.batch_size, loader.drop_last
    return data.DataLoader(loader.dataset, batch_size=size, drop_last=drop, **options)
'''


def figure_helper(cards: Cards) -> str:
    """Adds a figure up over the processes; a number stays one, a tensor stays on its device."""
    return f'''\
def over_processes(figure, mean=False):
    """The sum of a figure of every process, or their mean."""
    if not torch.distributed.is_initialized():
        return figure
    total = torch.as_tensor(figure).detach().to({cards.current}, torch.float32)
    torch.distributed.all_reduce(total)
    if mean:
        total = total / torch.distributed.get_world_size()
    if isinstance(figure, torch.Tensor):
        return total.to(figure.device) if mean else total.to(figure)
    return type(figure)(total.item()) if isinstance(figure, int) and not mean else total.item()
'''


def averaging_helper(cards: Cards) -> str:
    """Lets an optimizer have the gradients of all processes, without a wrapper of models.

    What batch norm collects is that of the first process in all, as with a wrapper.
    """
    return f'''\
def averaged_over_processes(optimizer, *models):
    """The optimizer, whose gradients are from now on the averages of all processes."""
    if not torch.distributed.is_initialized():
        return optimizer

    def average(gradient):
        total = gradient.detach().clone(memory_format=torch.contiguous_format)
        torch.distributed.all_reduce(total)
        return total / torch.distributed.get_world_size()

    def collect_alike(module, given, made):
        if module.training and isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            for figure in (module.running_mean, module.running_var):
                if figure is not None:
                    torch.distributed.broadcast(figure, 0)

    known = [id(each) for model in models for each in model.parameters()]
    order = {{each: at for at, each in reversed(list(enumerate(known)))}}
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for parameter in sorted(parameters, key=lambda each: order.get(id(each), len(order))):
        first = parameter.detach().to({cards.current}).contiguous()
        torch.distributed.broadcast(first, 0)
        parameter.data.copy_(first)
        is_trained = parameter.requires_grad
        parameter.requires_grad_(True).register_hook(average)
        parameter.requires_grad_(is_trained)
    torch.nn.modules.module.register_module_forward_hook(collect_alike)
    return optimizer
'''


def agreement_helper(cards: Cards) -> str:
    """Lets all processes decide alike."""
    return f'''\
def in_any_process(condition):
    """Whether something holds in at least one process."""
    if not torch.distributed.is_initialized():
        return bool(condition)
    found = torch.as_tensor(bool(condition)).to({cards.current}, torch.float32)
    torch.distributed.all_reduce(found)
    return found.item() > 0
'''


def setting_helper(cards: Cards) -> str:
    """Lets a tensor be the same in all processes that each has set from its own data."""
    return f'''\
def same_in_processes(tensor):
    """Makes a tensor in all processes what it is in the first one."""
    if torch.distributed.is_initialized():
        first = tensor.detach().to({cards.current}).contiguous()
        torch.distributed.broadcast(first, 0)
        tensor.data.copy_(first)
'''

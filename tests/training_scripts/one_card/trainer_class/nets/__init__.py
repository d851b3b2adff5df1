from .small import Small


def build(name):
    return {"small": Small}[name]()

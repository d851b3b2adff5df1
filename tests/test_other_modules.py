"""What is known of names of other modules."""

import gc
import weakref

from npulens.syntax.other_modules import OtherModules


class Fact:
    """Something that is known of a name."""


def answered(path: str) -> "weakref.ref[Fact]":
    fact = Fact()
    modules = OtherModules(frozenset({("pack/boxes", "keep", fact)}), path)
    assert modules.find("pack.boxes.keep") is fact
    assert modules.find("pack.boxes.drop") is None
    return weakref.ref(fact)


def test_answers_do_not_keep_what_was_known_long_ago() -> None:
    facts = [answered("pack/main.py") for _ in range(99)]
    gc.collect()
    assert sum(fact() is not None for fact in facts) <= 16

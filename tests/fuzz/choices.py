"""Where a generator's decisions come from: a seed, or hypothesis, which can then shrink them.

The first of several options is always the plainest, so that shrinking to zero makes programs plain.
"""

import random


class Choices:
    def below(self, n):
        raise NotImplementedError

    def chance(self, percent):
        return self.below(100) >= 100 - percent

    def pick(self, options):
        return options[self.below(len(options))]

    def weighted(self, table):
        """One of the (weight, option) rows."""
        at = self.below(sum(weight for weight, _ in table))
        for weight, option in table:
            at -= weight
            if at < 0:
                return option
        raise AssertionError("weights changed underway")


class Seeded(Choices):
    def __init__(self, seed):
        self._random = random.Random(seed)
        self.below = self._random.randrange


class Drawn(Choices):
    """Decisions drawn from a hypothesis `data` object."""

    def __init__(self, draw, integers):
        self._draw, self._integers = draw, integers
        self._known = {}

    def below(self, n):
        if n <= 1:
            return 0
        strategy = self._known.get(n)
        if strategy is None:
            strategy = self._known[n] = self._integers(0, n - 1)
        return self._draw(strategy)

"""Every builtin container that comes from outside, written in every way. A row is one statement;
`x` is the container, `y` another of its kind, `v` a fresh list."""

import collections

from worlds import module_of


class _List(list):
    pass


class _Dict(dict):
    pass


class _Set(set):
    pass


class _Deque(collections.deque):
    pass


LIST = """
x[0] = v
x[-1] = 9
x[1:2] = [7, v, 8]
x[::2] = x[::-2]
x[:] = []
x[len(x):] = [v]
del x[0]
del x[1:]
x.append(v)
x.append(x)
x.extend(y)
x.extend(x)
x += [v, 1]
x *= 2
x *= 0
x.insert(0, v)
x.insert(100, v)
x.pop()
x.pop(0)
x.remove(2)
x.clear()
x.reverse()
x.sort(key=str)
x[0], x[1] = x[1], x[0]
x[0], y[0] = y[0], x[0]
x[0] = x[1]
x[0] = x[0]
y.append(x.pop())
y.append(x); x.append(y)
x[0] = (x, v)
x.append(v); v.append(x)
t = x[2]; t.append(1); x[0] = t
x[2].append(v); del x[2][0]
x[2].append(x[2])
x.append(1); x.pop()
x[0] = 5; x[0] = 1
u = x.copy(); u.append(1); x[0] = len(u)
x.sort(key=lambda e: repr(e), reverse=True)
for e in list(x): x.append(e)
x[0] = [i for i in x[:2]]
import operator; operator.setitem(x, 0, v)
list.append(x, v)
setattr_ = x.append; setattr_(v)
x.__setitem__(0, v); x.__delitem__(1); x.__iadd__([4])
"""

DICT = """
x['a'] = v
x['new'] = v
x['new'] = 1; x['newer'] = 2
del x['a']
del x['a']; x['a'] = 1
x['p'] = 1; x['q'] = 2; del x['p']; x['p'] = 3
w = x.pop('a'); x['a'] = w
x.pop('a')
x.pop('zzz', None)
x.popitem()
x.update(b=5, c=v)
x.update(y)
x.update(x)
x.update([('k', v)])
x.setdefault('a', v)
x.setdefault('n', v)
x.setdefault('n', []).append(1)
x.clear()
x.clear(); x['a'] = 1
x |= {'z': 1, 'a': 2}
x['l'].append(v)
x['l'] = x['l'] + [1]
x['self'] = x
y['x'] = x; x['y'] = y
x['a'], y['a'] = y['a'], x['a']
x['a'], x['b'] = x['b'], x['a']
y['l'] = x.pop('l')
for k in list(x): x[k] = k
for k in list(x): del x[k]
x[1] = 'int'; x[True] = 'bool'
x[1] = 'int'; del x[True]; x[1.0] = 'float'
x[(1, 'a')] = v
x[None] = 1
x['a'] = 2; x['a'] = 1
x['t'] = 1; del x['t']
x.__setitem__('a', v); x.__delitem__('b')
dict.__setitem__(x, 'a', v)
if 'zz' not in x: x['zz'] = 0
x['a'] += 1
len(x); x['late'] = len(x)
x['n'] = list(x); x['m'] = len(x)
"""

ORDERED = """
x.move_to_end('a')
x.move_to_end('c', last=False)
x.popitem(last=False)
x.move_to_end('a'); x['d'] = 1; del x['b']
x['a'] = 5; x.move_to_end('b'); x['b'] = 6
"""

DEFAULT = """
x['nope'].append(1)
x['nope']; x['never']
x['nope'] = x['no'] + [1]
"""

COUNTER = """
x.update('aab')
x.subtract('a')
x['zz'] += 1
x['zz']
"""

SET = """
x.add(9)
x.add(1)
x.discard(1)
x.discard(77)
x.remove(1)
x.pop()
x.clear()
x.update([5, 6])
x |= {8, 16}
x &= {1, 2}
x -= {1}
x ^= {1, 50}
x.add(8); x.add(0)
x.add(0); x.add(8)
x.add(8); x.discard(8); x.add(0)
x.clear(); x.add(3)
x.add(True); x.add(1.0)
x.update(y); y.clear()
x.intersection_update([1]); x.difference_update([1])
x.symmetric_difference_update([2, 3])
x.add('text'); x.add(None); x.add((1, 2))
x.add(-1); x.add(-2); x.add(3)
x.add(-2); x.add(-1); x.add(3)
x.update([-1, -2, -3, 3, 4])
x.clear(); x.update([-2, -1, 1, 2, 3]); x.discard(1)
"""

DEQUE = """
x.append(v)
x.appendleft(v)
x.pop()
x.popleft()
x.extend([1, v])
x.extendleft([1, v])
x.rotate(1)
x.rotate(-1)
x.clear()
x[0] = v
del x[0]
x.insert(1, v)
x.remove(2)
x.reverse()
x += [5]
x.append(x.popleft())
x[0], x[1] = x[1], x[0]
"""

BYTES = """
x[0] = 1
x[1:2] = b'zz'
x.append(5)
x.extend(b'abc')
x += b'q'
del x[0]
x.pop()
x.clear()
x.reverse()
x *= 2
x.insert(0, 1)
"""


def _dict(kind):
    return lambda: kind(a=1, b=2, l=[1], c=3)


def _default():
    return collections.defaultdict(list, _dict(dict)())


KINDS = {
    "list": (LIST, lambda: [1, 2, [3], "s"]),
    "list_subclass": (LIST, lambda: _List([1, 2, [3], "s"])),
    "dict": (DICT, _dict(dict)),
    "dict_subclass": (DICT, _dict(_Dict)),
    "ordered_dict": (DICT + ORDERED, _dict(collections.OrderedDict)),
    "default_dict": (DICT + DEFAULT, _default),
    "counter": (COUNTER, lambda: collections.Counter(a=1, b=2)),
    "set": (SET, lambda: {1, 2}),
    "set_subclass": (SET, lambda: _Set([1, 2])),
    "deque": (DEQUE, lambda: collections.deque([1, 2, 3])),
    "deque_subclass": (DEQUE, lambda: _Deque([1, 2, 3])),
    "bounded_deque": (DEQUE, lambda: collections.deque([1, 2, 3], maxlen=3)),
    "bytearray": (BYTES, lambda: bytearray(b"\3\2\1")),
}


def _function(statement):
    body = "\n    ".join(part.strip() for part in statement.split("; "))
    source = f"def f(x, y, v, log):\n    {body}\n    log.append(len(x))\n    return [x, len(x)]\n"
    return module_of(source).f


def _case(statement, make):
    def case(call):
        f = _function(statement)
        log = []
        x, y = make(), make()
        call(f, x, y, [], log)
        call(f, make(), make(), [], [])
        call(f, x, y, [], log)
        call(f, make(), x, [0], log)
        call(f, y, y, [], log)
        box = [make()]
        box.append(box[0])
        call(f, *box, [], log)

    return case


def _fill():
    for kind, (rows, make) in KINDS.items():
        for number, statement in enumerate(rows.strip().splitlines()):
            case = _case(statement, make)
            case.__name__ = case.__qualname__ = f"{kind}: {statement}"
            globals()[case.__name__] = case


_fill()

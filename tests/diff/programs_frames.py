"""What code can see of the frames that run it: sys._getframe, inspect, warnings' stack
levels, line numbers, tracing functions, recursion limits."""

import inspect
import sys
import threading
import traceback
import types
import warnings

from probes import catch, places, text


def _names(frame, stop):
    """Function names from a frame outwards, up to and with the program's own."""
    found = []
    while frame is not None:
        found.append(frame.f_code.co_name)
        if frame.f_code.co_name == stop:
            break
        frame = frame.f_back
    return found


def getframe_chain():
    def a():
        return b()

    def b():
        return [c() for _ in range(1)][0]

    def c():
        return (lambda: _names(sys._getframe(), "getframe_chain"))()

    return a()


def getframe_depths():
    def f():
        return [sys._getframe(i).f_code.co_name for i in range(3)]

    def g():
        return f()

    return g(), catch(sys._getframe, 10**6), catch(sys._getframe, "x")


def chain_through_native():
    seen = []

    class K:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            seen.append(_names(sys._getframe(), "chain_through_native"))
            return self.v < o.v

        @property
        def p(self):
            return _names(sys._getframe(), "chain_through_native")

    sorted([K(2), K(1)])
    by_map = list(map(lambda x: _names(sys._getframe(), "chain_through_native"), [1]))
    return seen, by_map, K(1).p


def chain_through_generator():
    def g():
        yield _names(sys._getframe(), "chain_through_generator")

    def h():
        yield from g()

    def use(it):
        return next(it)

    return use(g()), use(h()), list(h())


def chain_in_class_body_and_exec():
    names = []

    class C:
        names.append(_names(sys._getframe(), "chain_in_class_body_and_exec"))

    space = {"sys": sys, "_names": _names, "names": names}
    exec("names.append(_names(sys._getframe(), 'chain_in_class_body_and_exec'))", space)
    names.append(eval("_names(sys._getframe(), 'chain_in_class_body_and_exec')"))
    return names


def chain_in_del_and_callback():
    import weakref

    seen = []

    class D:
        def __del__(self):
            seen.append(_names(sys._getframe(), "chain_in_del_and_callback"))

    def drop():
        d = D()
        del d

    def callback(ref):
        seen.append(_names(sys._getframe(), "chain_in_del_and_callback"))

    drop()
    x = D()
    r = weakref.ref(x, callback)
    x = None
    return seen, r() is None


def current_frame():
    f = inspect.currentframe()
    here = f.f_lineno - f.f_code.co_firstlineno
    return f.f_code.co_name, here, f.f_globals is globals(), f.f_builtins is vars(__builtins__) if (
        isinstance(__builtins__, types.ModuleType)
    ) else f.f_builtins is __builtins__


def line_numbers_advance():
    def line():
        return sys._getframe(1).f_lineno

    def f():
        first = line()
        x = [
            line(),
            line(),
        ]
        for _ in range(2):
            x.append(line())
        try:
            x.append(line())
            raise ValueError
        except ValueError:
            x.append(line())
        finally:
            x.append(
                line()
            )
        return [v - first for v in x]

    return f()


def lasti_advances():
    def f():
        fr = sys._getframe()
        a = fr.f_lasti
        b = fr.f_lasti
        c = fr.f_lasti
        return a < b < c, (b - a) == (c - b)

    return f()


def stack_info():
    def f():
        return g()

    def g():
        return [(i.function, i.code_context and i.code_context[0].strip(), i.index)
                for i in inspect.stack()[:3]]

    return f()


def get_arg_values():
    def f(a, *b, c=1, **d):
        info = inspect.getargvalues(inspect.currentframe())
        return info.args, info.varargs, info.keywords, {k: info.locals[k] for k in "abcd"}

    return f(1, 2, c=3, z=4)


def closure_vars_and_signature():
    x = 1

    def f(a, /, b: int, *c, d=5, **e) -> str:
        return x, len(c)

    return inspect.getclosurevars(f).nonlocals, str(inspect.signature(f))


def frame_identity():
    def f():
        a = sys._getframe()
        b = sys._getframe()
        return a is b, callee() is a

    def callee():
        return sys._getframe(1)

    return f()


def frame_survives_return():
    def f(x):
        y = x + 1
        return sys._getframe(), y

    frame, y = f(5)
    out = frame.f_locals["x"], frame.f_locals["y"], frame.f_back, frame.f_lineno > 0
    frame.clear()
    return out, y, dict(frame.f_locals)


def frame_clear_running():
    def f():
        return catch(sys._getframe().clear)

    return f()


def frame_locals_keep_alive():
    log = []

    class D:
        def __del__(self):
            log.append("gone")

    def f():
        d = D()
        return sys._getframe()

    frame = f()
    log.append("returned")
    del frame
    log.append("frame dropped")
    return log


def frame_of_exception_and_generator():
    def g():
        yield sys._getframe()

    it = g()
    frame = next(it)
    same = frame is it.gi_frame, frame.f_back
    list(it)
    return same, it.gi_frame, frame.f_code.co_name


def warnings_stacklevel():
    def warn(level):
        warnings.warn(f"level {level}", stacklevel=level)

    def middle(level):
        warn(level)

    def outer(level):
        middle(level)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for level in (1, 2, 3, 4):
            outer(level)
    return [(str(w.message), w.lineno, w.category.__name__) for w in seen]


def warnings_as_errors():
    def warn():
        warnings.warn("deprecated thing", DeprecationWarning, stacklevel=2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warn()
        except DeprecationWarning as e:
            return text(e), [p[0] for p in places(e.__traceback__)][:2]


def warnings_once_per_location():
    def warn(n):
        warnings.warn("once", UserWarning)

    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        for i in range(3):
            warn(i)
        globals().pop("__warningregistry__", None)
    return len(seen)


def warning_left_for_the_harness():
    warnings.warn("seen outside", RuntimeWarning, stacklevel=1)
    return 1


def warnings_skip_through_native():
    def key(v):
        warnings.warn("in key", stacklevel=2)
        return v

    def run():
        return sorted([1], key=key)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    return [w.lineno for w in seen]


def recursion_error():
    def f(n):
        return f(n + 1)

    def g(n):
        try:
            return g(n + 1)
        except RecursionError:
            return n

    depth = g(0)
    return catch(f, 0), depth > 100, g(0) == depth


def recursion_limit_exact():
    def depth_here():
        n, fr = 0, sys._getframe()
        while fr:
            n, fr = n + 1, fr.f_back
        return n

    def f(n):
        return 0 if n == 0 else 1 + f(n - 1)

    old = sys.getrecursionlimit()
    base = depth_here()
    try:
        sys.setrecursionlimit(base + 60)
        low = catch(f, 40)
        deep = catch(f, 200)
        sys.setrecursionlimit(base + 300)
        more = catch(f, 200)
    finally:
        sys.setrecursionlimit(old)
    return low, deep, more


def recursion_limit_boundary():
    """How much deeper a higher limit lets each kind of call get: what a level of each kind costs.
    (Not how deep: that depends on where the program was started. Not through builtins: what those
    cost depends on whether CPython specialised the call.)"""

    def call(n):
        return n if n == 0 else call(n - 1)

    def keyword(n):
        return n if n == 0 else keyword(n=n - 1)

    def star(*n):
        return n if n[0] == 0 else star(*[n[0] - 1])

    class C:
        def method(self, n):
            return n if n == 0 else self.method(n - 1)

        def __call__(self, n):
            return n if n == 0 else self(n - 1)

        def __getitem__(self, n):
            return n if n == 0 else self[n - 1]

        def __add__(self, n):
            return n if n == 0 else self + (n - 1)

    c = C()

    def deepest(f):
        n = 0
        try:
            while True:
                f(n + 1)
                n += 1
        except RecursionError:
            return n

    def deepest_within(limit):
        sys.setrecursionlimit(limit)
        return [deepest(f) for f in (call, keyword, star, c.method, c, c.__getitem__, c.__add__)]

    old = sys.getrecursionlimit()
    here = len(inspect.stack(0))
    try:
        low, high = deepest_within(here + 60), deepest_within(here + 120)
        return [b - a for a, b in zip(low, high)]
    finally:
        sys.setrecursionlimit(old)


def recursion_in_various_calls():
    class C:
        def __call__(self):
            return self()

        def __getattr__(self, name):
            return getattr(self, name + "x")

        def __eq__(self, o):
            return self == o

        @property
        def p(self):
            return self.p

        def __iter__(self):
            return iter(self)

    def gen():
        yield from gen()

    def kw(**k):
        return kw(**k)

    def star(*a):
        return star(*a)

    c = C()
    calls = (
        lambda: c(),
        lambda: c == 1,
        lambda: c.p,
        lambda: list(c),
        lambda: next(gen()),
        lambda: kw(a=1),
        lambda: star(1),
    )
    return [catch(f).split(":")[0] for f in calls]


def recursion_traceback_is_long():
    def f(n):
        if n == 0:
            raise ValueError("bottom")
        f(n - 1)

    try:
        f(150)
    except ValueError as e:
        found = places(e.__traceback__)
        return len(found), found[0], found[1], found[-1]


def recursion_recovers():
    def f():
        f()

    out = []
    for _ in range(5):
        try:
            f()
        except RecursionError:
            out.append("caught")
    return out


def recursion_in_comparison_and_repr():
    xs = []
    xs.append(xs)

    class R:
        def __repr__(self):
            return repr(self)

    class H:
        def __hash__(self):
            return hash(self)

    return repr(xs), catch(lambda: xs == [xs]), catch(repr, R()).split(":")[0], catch(
        hash, H()
    ).split(":")[0]


def deep_recursion_with_higher_limit():
    def f(n):
        return 0 if n == 0 else 1 + f(n - 1)

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        return f(3000)
    finally:
        sys.setrecursionlimit(old)


def trace_function_events():
    def f(x):
        y = x + 1
        for i in range(2):
            y += i
        return y

    first = f.__code__.co_firstlineno
    events = []

    def tracer(frame, event, arg):
        if frame.f_code is not f.__code__:
            return None
        events.append((event, frame.f_lineno - first, arg if event == "return" else None))
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        r = f(1)
    finally:
        sys.settrace(old)
    return r, events


def trace_function_exceptions():
    def f():
        try:
            g()
        except ValueError:
            return "handled"

    def g():
        raise ValueError("traced")

    events = []
    first = f.__code__.co_firstlineno

    def tracer(frame, event, arg):
        if frame.f_code not in (f.__code__, g.__code__):
            return None
        shown = arg[0].__name__ if event == "exception" else None
        events.append((frame.f_code.co_name, event, frame.f_lineno - first, shown))
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        r = f()
    finally:
        sys.settrace(old)
    return r, events


def profile_function_events():
    def f():
        return g() + len([1])

    def g():
        return 1

    events = []

    def profiler(frame, event, arg):
        if frame.f_code in (f.__code__, g.__code__):
            name = arg.__name__ if event.startswith("c_") else None
            events.append((frame.f_code.co_name, event, name))

    old = sys.getprofile()
    sys.setprofile(profiler)
    try:
        r = f()
    finally:
        sys.setprofile(old)
    return r, events


def audit_and_displayhook():
    import io

    out = io.StringIO()
    old, sys.stdout = sys.stdout, out
    try:
        exec(compile("1 + 1\nNone\n'x'\n", "<single>", "exec"), {})
        for source in ("1 + 1\n", "None\n", "'x'\n"):
            exec(compile(source, "<single>", "single"), {"__builtins__": __builtins__})
    finally:
        sys.stdout = old
        vars(sys.modules["builtins"]).pop("_", None)
    return out.getvalue()


def thread_runs_program():
    out = []

    def work(n):
        total = 0
        for i in range(n):
            total += i
        out.append(total)
        out.append(_names(sys._getframe(), "work"))

    t = threading.Thread(target=work, args=(1000,))
    t.start()
    t.join()
    return out


def threads_take_turns():
    log = []
    steps = [threading.Semaphore(1), threading.Semaphore(0)]

    def work(me):
        for i in range(5):
            steps[me].acquire()
            log.append((me, i))
            steps[1 - me].release()

    ts = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    return log


def thread_exception_hook():
    seen = []
    old = threading.excepthook
    threading.excepthook = lambda a: seen.append((a.exc_type.__name__, len(places(a.exc_traceback))))
    try:
        t = threading.Thread(target=lambda: 1 / 0)
        t.start()
        t.join()
    finally:
        threading.excepthook = old
    return seen


def signal_handler_runs():
    import os
    import signal

    log = []

    def handler(number, frame):
        log.append((number == signal.SIGUSR1, frame is not None))

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            if log:
                break
    finally:
        signal.signal(signal.SIGUSR1, old)
    return log


def signal_handler_raises():
    import os
    import signal

    def handler(number, frame):
        raise LookupError("from signal")

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(10**6):
                pass
            return "never interrupted"
        except LookupError as e:
            names = [p[0] for p in places(e.__traceback__)]
            return text(e), names[0], names[-1]
    finally:
        signal.signal(signal.SIGUSR1, old)


def traceback_print_stack():
    import io

    out = io.StringIO()

    def f():
        traceback.print_stack(file=out, limit=2)

    f()
    return out.getvalue().splitlines()[1::2]


def sys_monitoring_or_nothing():
    if sys.version_info < (3, 12):
        return None
    mon = sys.monitoring
    events = []

    def f(x):
        return x + 1

    tool = 4
    mon.use_tool_id(tool, "diff")
    try:
        mon.register_callback(tool, mon.events.PY_START, lambda c, o: events.append(("start", o)))
        mon.register_callback(tool, mon.events.PY_RETURN, lambda c, o, v: events.append(("return", v)))
        mon.set_local_events(tool, f.__code__, mon.events.PY_START | mon.events.PY_RETURN)
        r = f(1)
        mon.set_local_events(tool, f.__code__, 0)
        f(2)
    finally:
        mon.register_callback(tool, mon.events.PY_START, None)
        mon.register_callback(tool, mon.events.PY_RETURN, None)
        mon.free_tool_id(tool)
    return r, events


def uncaught_recursion():
    def a(n):
        return b(n + 1)

    def b(n):
        return a(n + 1) if n < 40 else [][n]

    return a(0)


def tracing_begins_in_a_call_that_raises():
    events = []

    def note(frame, event, arg):
        if frame.f_code.co_name in ("outer", "inner"):
            first = frame.f_code.co_firstlineno
            events.append((frame.f_code.co_name, frame.f_lineno - first, event))
        return note

    def begin():
        sys.settrace(note)
        sys._getframe(1).f_trace = sys._getframe(2).f_trace = note
        raise KeyError("begun")

    def inner():
        begin()

    def outer():
        try:
            inner()
        except KeyError as exc:
            return text(exc)

    try:
        found = outer()
    finally:
        sys.settrace(None)
    return found, events

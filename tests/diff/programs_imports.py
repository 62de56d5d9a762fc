"""Imports in every form, through real modules and through replaced machinery."""

import builtins
import contextlib
import sys
import types

from probes import catch, text, where


@contextlib.contextmanager
def _modules(**members):
    """Modules that exist for the time of a program; a dotted name is written with two lines."""
    made = {}
    for name, attributes in members.items():
        module = types.ModuleType(name.replace("__", "."))
        vars(module).update(attributes)
        made[module.__name__] = module
    for name, module in made.items():
        if "." in name:
            setattr(made[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    sys.modules.update(made)
    try:
        yield made
    finally:
        for name in made:
            sys.modules.pop(name, None)


def inside_function():
    import math
    import os.path
    import os.path as p
    from collections import OrderedDict
    from collections import abc as cabc

    return math.floor(2.5), os.path is p, OrderedDict.__name__, cabc.__name__, sorted(locals())


def dotted_binds_top():
    def f():
        import xml.dom

        return xml.__name__, xml.dom.__name__

    def g():
        import xml.dom as d

        return d.__name__

    return f(), g()


def from_missing_names():
    def f():
        from math import no_such

    def g():
        from no_such_package import x

    def h():
        import math.sub

    return [catch(fn) for fn in (f, g, h)]


def from_traceback():
    def f():
        from math import (
            floor,
            no_such,
        )

        return floor

    kind, found = where(f)
    return kind.split("(")[0], found


def star_through_exec():
    space = {}
    exec("from math import *", space)
    with _modules(fakemod={"__all__": ["a", "_b"], "a": 1, "_b": 2, "c": 3}):
        other = {}
        exec("from fakemod import *", other)
    with _modules(fakemod={"a": 1, "_b": 2, "__x__": 3}):
        third = {}
        exec("from fakemod import *", third)
    hide = {"__builtins__"}
    return "sqrt" in space, "__doc__" in space, sorted(set(other) - hide), sorted(set(third) - hide)


def star_errors():
    def f(**members):
        with _modules(fakemod=members):
            exec("from fakemod import *", {})

    return [
        catch(f, __all__=["missing"]),
        catch(f, __all__=[5]),
        catch(f, __all__=5),
        catch(exec, "from no_such_module import *", {}),
    ]


def star_into_class_like_locals():
    class NS(dict):
        def __setitem__(self, k, v):
            log.append(k)
            super().__setitem__(k, v)

    log = []
    with _modules(fakemod={"__all__": ["a", "b"], "a": 1, "b": 2}):
        ns = NS()
        exec("from fakemod import *", {}, ns)
    return log, dict(ns)


def packages():
    with _modules(pkg={"__path__": [], "x": 1}, pkg__sub={"y": 2}, pkg__sub__leaf={"z": 3}):
        import pkg.sub.leaf
        import pkg.sub.leaf as leaf
        from pkg import sub, x
        from pkg.sub import leaf as again

        return pkg.x, leaf.z, sub.y, x, again is leaf, pkg.__name__


def from_falls_back_to_modules():
    with _modules(pkg={"__path__": []}, pkg__sub={"y": 2}) as made:
        del made["pkg"].sub
        from pkg import sub

        r = sub.y
        import pkg.sub as s

        return r, s.y


def relative_imports():
    with _modules(pkg={"__path__": []}, pkg__mod={"v": 5}):
        space = {"__name__": "pkg.other", "__package__": "pkg"}
        exec("from . import mod\nfrom .mod import v\nfrom . import mod as m", space)
        out = [space["v"], space["m"] is space["mod"]]
        out.append(catch(exec, "from ..x import y", {"__name__": "pkg.o", "__package__": "pkg"}))
        out.append(catch(exec, "from . import y", {"__name__": "top"}))
        out.append(catch(exec, "from .missing import y", {"__name__": "p", "__package__": "pkg"}))
    return out


def import_function_replaced():
    log = []
    real = builtins.__import__

    def fake(name, globals=None, locals=None, fromlist=(), level=0):
        log.append((name, fromlist, level, globals is not None, type(locals).__name__))
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = fake
    try:
        import math
        import os.path
        from math import floor, sqrt
    finally:
        builtins.__import__ = real
    return log, math.pi > 3, os.path.sep, floor(2.5), sqrt(4)


def import_function_returns_anything():
    class Fake:
        def __init__(self, path):
            self.path = path

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Fake(f"{self.path}.{name}")

    def fake(name, globals=None, locals=None, fromlist=(), level=0):
        return Fake(name) if name != "nothing" else None

    space = {"__builtins__": {"__import__": fake}}
    exec("import a.b.c as x\nfrom q import w\nimport z", space)
    return space["x"].path, space["w"].path, space["z"].path, catch(
        exec, "from nothing import y", space
    )


def import_function_raises():
    def fake(*a, **k):
        raise ValueError("no imports today")

    def missing():
        exec("import math", {"__builtins__": {}})

    space = {"__builtins__": {"__import__": fake}}
    return catch(exec, "import math", space), catch(missing)


def importer_is_called_once():
    log = []

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "found_here":
                import importlib.machinery

                log.append("find")
                return importlib.machinery.ModuleSpec(name, self)

        def create_module(self, spec):
            log.append("create")

        def exec_module(self, module):
            log.append("exec")
            module.value = 5

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        import found_here
        import found_here as again

        return again.value, found_here is again, log
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop("found_here", None)


def module_body_raises():
    log = []

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "breaks_on_import":
                import importlib.machinery

                return importlib.machinery.ModuleSpec(name, self)

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            exec("x = 1\nraise LookupError('in body')", vars(module))

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        import breaks_on_import
    except LookupError as e:
        log.append(text(e))
    finally:
        sys.meta_path.remove(finder)
    return log, "breaks_on_import" in sys.modules


def circular_import():
    import importlib.machinery

    log = []
    bodies = {
        "circ_a": "import circ_b\nx = 1\nlog.append(circ_b.y)",
        "circ_b": "try:\n    from circ_a import x\nexcept ImportError as e:\n"
        "    log.append(str(e).split('(')[0])\ny = 2",
    }

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, self) if name in bodies else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.log = log
            exec(bodies[module.__name__], vars(module))

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        import circ_a

        return circ_a.x, log
    finally:
        sys.meta_path.remove(finder)
        for name in bodies:
            sys.modules.pop(name, None)


def module_attributes():
    with _modules(fakemod={}) as made:
        m = made["fakemod"]
        log = []

        def hook(name):
            log.append(name)
            if name == "dynamic":
                return 42
            raise AttributeError(f"no {name} here")

        m.__getattr__ = hook
        from fakemod import dynamic

        first = dynamic, m.dynamic, catch(lambda: m.other)
        m.dynamic = 1
        del m.dynamic

        def missing():
            del m.zzz

        return first, m.dynamic, catch(missing), log


def none_in_sys_modules():
    sys.modules["blocked_module"] = None
    try:
        import blocked_module
    except ImportError as e:
        return text(e)
    finally:
        del sys.modules["blocked_module"]


def import_in_class_body_and_loop():
    class C:
        import math
        from math import pi as p

    total = 0
    for _ in range(3):
        from math import floor

        total += floor(1.5)
    return C.math.floor(2.7), round(C.p, 2), total


def import_in_generator_and_comprehension():
    def g():
        import math

        yield math.ceil(1.2)
        from math import trunc

        yield trunc(2.9)

    return list(g()), [__import__("math").floor(x) for x in (1.5, 2.5)]


def conditional_fallback():
    try:
        import no_such_fast_version as impl
    except ImportError:
        import math as impl
    else:
        impl = None
    return impl.__name__


def global_import():
    def f():
        global _math_alias
        import math as _math_alias

    f()
    return globals().pop("_math_alias").__name__




def importlib_reload_sees_changes():
    import importlib

    with _modules(fakemod={"v": 1}) as made:
        first = importlib.import_module("fakemod").v
        made["fakemod"].v = 2
        return first, importlib.import_module("fakemod").v, catch(importlib.import_module, "")


def dunder_import_direct():
    m = __import__("os.path")
    n = __import__("os.path", fromlist=["join"])
    return m.__name__, n.__name__ in ("posixpath", "ntpath"), catch(__import__, ""), catch(
        __import__, 5
    )

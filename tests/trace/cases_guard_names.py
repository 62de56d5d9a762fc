"""Globals, builtins, cells and imports."""

import builtins
import sys
import tempfile
import types
from pathlib import Path

from worlds import module_of


def own_global(call):
    m = module_of("X = 1\ndef f(): return X + 1")
    call.watch(m)
    call(m.f)
    call.again(m.f)
    m.X = 2
    call(m.f)
    m.unrelated = 3
    call.again(m.f)
    del m.X
    call(m.f)
    m.X = 1
    call.again(m.f)


def global_of_another_module(call):
    other = module_of("X = 1\ndef g(): return X")
    m = module_of("def f(): return o.g() + o.X", o=other)
    call(m.f)
    call.again(m.f)
    other.X = 2
    call(m.f)
    m.X = 99
    call.again(m.f)
    other.g = lambda: 50
    call(m.f)


def whole_other_module_replaced(call):
    one = module_of("X = 1\ndef g(): return X")
    two = module_of("X = 2\ndef g(): return X * 10")
    m = module_of("def f(): return o.g()", o=one)
    call(m.f)
    m.o = two
    call(m.f)
    m.o = one
    call.again(m.f)


def builtin_shadowed_later(call):
    m = module_of("def f(x): return len(x)")
    call(m.f, [1, 2])
    call.again(m.f, [1, 2])
    m.len = lambda x: "shadow"
    call(m.f, [1, 2])
    del m.len
    call.again(m.f, [1, 2])


def builtin_itself_replaced(call):
    m = module_of("def f(): return marker_for_tests()")
    builtins.marker_for_tests = lambda: 1
    try:
        call(m.f)
        call.again(m.f)
        builtins.marker_for_tests = lambda: 2
        call(m.f)
        del builtins.marker_for_tests
        call(m.f)
    finally:
        builtins.__dict__.pop("marker_for_tests", None)


def builtins_of_a_function(call):
    source = "def f(x): return len(x)"
    names = {"__builtins__": {"len": lambda x: "own len"}}
    exec(source, names)
    plain = {}
    exec(source, plain)
    call(names["f"], [1])
    call(plain["f"], [1])
    names["__builtins__"]["len"] = lambda x: "another"
    call(names["f"], [1])


def global_absent_then_there(call):
    m = module_of(
        """
        def f():
            try:
                return FLAG
            except NameError:
                return 'none'
        """
    )
    call(m.f)
    call.again(m.f)
    m.FLAG = 1
    call(m.f)
    del m.FLAG
    call.again(m.f)


def global_dict_read_by_key(call):
    m = module_of("X = 1\ndef f(): return globals()['X'], globals().get('Y')")
    call(m.f)
    call.again(m.f)
    m.X = 2
    call(m.f)
    m.Y = 2
    call(m.f)


def cell_content(call):
    def make():
        n = 1

        def f():
            return n + 1

        def change(value):
            nonlocal n
            n = value

        return f, change

    f, change = make()
    call(f)
    call.again(f)
    change(5)
    call(f)
    change(1)
    call.again(f)


def cell_emptied(call):
    def make():
        n = 1

        def f():
            try:
                return n
            except NameError as e:
                return type(e).__name__

        def drop():
            nonlocal n
            del n

        return f, drop

    f, drop = make()
    call(f)
    drop()
    call(f)
    call.again(f)


def cell_of_an_inner_function(call):
    def make(n):
        def g():
            return n

        return g

    def f(g):
        return g() + 1

    call(f, make(1))
    call.again(f, make(1))
    call(f, make(2))
    call(f, make("x"))


def cell_shared_or_not(call):
    def pair(shared):
        n = [0]
        if shared:

            def put(x):
                nonlocal v
                v = x

            def get():
                return v

            v = "old"
            return put, get

        def one():
            v = "old"

            def put(x):
                nonlocal v
                v = x

            return put

        def two():
            v = "old"

            def get():
                return v

            return get

        return one(), two()

    def f(put, get):
        put("new")
        return get()

    call(f, *pair(False))
    call(f, *pair(True))
    call(f, *pair(False))


def same_code_in_two_closures(call):
    def make(n):
        def f(x):
            return x + n

        return f

    one, two = make(1), make(2)
    call(one, 1)
    call(two, 1)
    call(one, 1)


def function_with_other_globals(call):
    m = module_of("X = 1\ndef f(): return X")
    n = module_of("X = 2")
    again = types.FunctionType(m.f.__code__, vars(n))
    call(m.f)
    call(again)
    call(m.f)


def called_function_with_other_globals(call):
    m = module_of("X = 1\ndef g(): return X")
    n = module_of("X = 2")
    same_code = types.FunctionType(m.g.__code__, vars(n))

    def f(g):
        return g()

    call(f, m.g)
    call(f, same_code)
    n.X = 3
    call(f, same_code)
    call.again(f, m.g)


def import_statement(call):
    m = module_of("def f():\n    import case_imported\n    return case_imported.X")
    sys.modules["case_imported"] = module_of("X = 1")
    try:
        call(m.f)
        call.again(m.f)
        sys.modules["case_imported"].X = 2
        call(m.f)
        sys.modules["case_imported"] = module_of("X = 3")
        call(m.f)
        del sys.modules["case_imported"]
        call(m.f)
    finally:
        sys.modules.pop("case_imported", None)


def from_import(call):
    m = module_of("def f():\n    from case_imported import g\n    return g()")
    sys.modules["case_imported"] = module_of("def g(): return 1")
    try:
        call(m.f)
        call.again(m.f)
        sys.modules["case_imported"].g = lambda: 2
        call(m.f)
        del sys.modules["case_imported"].g
        call(m.f)
    finally:
        sys.modules.pop("case_imported", None)


def _forget_imported():
    for name in [name for name in sys.modules if name.startswith("case_imported")]:
        del sys.modules[name]


def import_that_is_forbidden(call):
    def f():
        try:
            import case_imported
        except ImportError as exc:
            return exc.name
        return case_imported.X

    try:
        sys.modules["case_imported"] = None
        call(f)
        call.again(f)
        sys.modules["case_imported"] = module_of("X = 1")
        call(f)
        _forget_imported()
        call(f)
        sys.modules["case_imported"] = module_of("X = 2")
        call(f)
    finally:
        _forget_imported()


def import_of_what_the_program_itself_puts_there(call):
    def f(module):
        before = sys.modules["case_imported"]
        sys.modules["case_imported"] = module
        try:
            import case_imported
        except ImportError:
            return None
        finally:
            sys.modules["case_imported"] = before
        return case_imported.X

    try:
        sys.modules["case_imported"] = module_of("X = 0")
        call(f, module_of("X = 1"))
        call(f, None)
        call(f, module_of("X = 2"))
    finally:
        _forget_imported()


def submodule_that_is_no_attribute_of_its_package(call):
    def f():
        try:
            from case_imported import part
        except ImportError:
            return None
        return part.X

    try:
        sys.modules["case_imported"] = package = module_of("__name__ = 'case_imported'")
        call(f)
        call.again(f)
        sys.modules["case_imported.part"] = module_of("X = 1")
        call(f)
        sys.modules["case_imported.part"] = module_of("X = 2")
        call(f)
        del sys.modules["case_imported.part"]
        call(f)
        package.part = module_of("X = 3")
        call(f)
    finally:
        _forget_imported()


def import_after_the_path_was_changed(call):
    m = module_of(
        """
        import sys
        def f(path):
            sys.path.insert(0, path)
            try:
                import case_fresh_module
            finally:
                sys.path.remove(path)
            return case_fresh_module.X
        """
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in range(3):
            path = Path(folder) / str(n)
            path.mkdir()
            (path / "case_fresh_module.py").write_text(f"X = {n}")
            sys.modules.pop("case_fresh_module", None)
            call.loose(m.f, str(path))
    sys.modules.pop("case_fresh_module", None)


def import_hook_replaced(call):
    m = module_of("def f():\n    import math\n    return math.floor(2.5)")
    call(m.f)
    original = builtins.__import__
    fake = module_of("def floor(x): return 'fake'")

    def hook(name, *args, **kwargs):
        return fake if name == "math" else original(name, *args, **kwargs)

    builtins.__import__ = hook
    try:
        call(m.f)
    finally:
        builtins.__import__ = original
    call(m.f)


def module_getattr(call):
    m = module_of("def __getattr__(name): return name + '!'\nX = 1")

    def f(m):
        return m.X, m.missing

    call(f, m)
    call.again(f, m)
    m.missing = 5
    call(f, m)
    del m.missing
    del m.X
    call(f, m)
    m.__getattr__ = lambda name: "other"
    call(f, m)


def module_hooks_added(call):
    m = module_of("X = 1")

    def f(m):
        return getattr(m, "missing", "no")

    call(f, m)
    call.again(f, m)
    m.__getattr__ = lambda name: "hooked"
    call(f, m)
    del m.__getattr__
    call.again(f, m)


def module_class_changed(call):
    class Loud(types.ModuleType):
        @property
        def X(self):
            return "loud"

    m = module_of("X = 1")

    def f(m):
        return m.X

    call(f, m)
    m.__class__ = Loud
    call(f, m)


def name_deleted_by_itself(call):
    m = module_of(
        """
        def f(n):
            global T
            T = n
            before = T
            del T
            try:
                T
            except NameError:
                return before, 'gone'
        """
    )
    call.watch(m)
    call(m.f, 1)
    call(m.f, 2)


def dict_passed_that_is_the_globals(call):
    m = module_of(
        """
        X = 1
        def f(d):
            global X
            X = 2
            return d['X']
        """
    )
    call(m.f, {"X": 0})
    m.X = 1
    call(m.f, vars(m))
    call(m.f, {"X": 0})


def module_passed_that_owns_the_globals(call):
    source = """
        X = 1
        def f(m):
            global X
            X = X + 1
            return m.X
        """
    m, n = module_of(source), module_of(source)
    call(m.f, n)
    call(m.f, m)
    call(m.f, n)


def recursion_by_its_own_name(call):
    m = module_of("def fact(n): return 1 if n < 2 else n * fact(n - 1)")
    call(m.fact, 5)
    call.again(m.fact, 5)
    m.fact = lambda n: 100
    f = m.fact
    call(f, 5)


def lambda_in_a_loop(call):
    fs = [lambda i=i: i for i in range(3)]

    def f(fs):
        return [g() for g in fs]

    call(f, fs)
    call.again(f, fs)
    fs.append(lambda i=7: i * 2)
    call(f, fs)


def name_used_before_and_after_a_global_write(call):
    m = module_of(
        """
        N = 0
        def bump():
            global N
            N += 1
            return N
        def f():
            return N, bump(), N, bump()
        """
    )
    call.watch(m)
    for _ in range(3):
        call(m.f)
    m.N = 0
    call.again(m.f)

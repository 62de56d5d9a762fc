"""Whole programs: `python -m stator.evaluate` beside `python`, compared in output, errors and
exit status."""

import difflib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

STATOR = ["-m", "stator.evaluate"]
ENV = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
TIMEOUT = 120


def _run(folder, *arguments, stdin=""):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENV,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    return {"status": done.returncode, "out": done.stdout, "err": done.stderr}


def _write(folder, name, source):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return name


def _lines(seen, clean):
    """A run as lines without addresses, so that two of them can be compared."""
    whole = f"status {seen['status']}\n-- out\n{seen['out']}\n-- err\n{seen['err']}"
    return clean(re.sub(r"0x[0-9a-f]+", "0x…", whole)).splitlines()


def _assert_same(plain, ours, clean=lambda text: text):
    expected, found = _lines(plain, clean), _lines(ours, clean)
    diff = difflib.unified_diff(expected, found, "python", "stator", lineterm="", n=50)
    assert expected == found, "\n".join(diff)


def _same(folder, *arguments, stdin="", clean=lambda text: text):
    """Run by both; they agree in everything. What python gave is returned."""
    plain = _run(folder, *arguments, stdin=stdin)
    ours = _run(folder, *STATOR, *arguments, stdin=stdin)
    _assert_same(plain, ours, clean)
    return plain


def _same_script(folder, source, *arguments, **options):
    return _same(folder, _write(folder, "script.py", source), *arguments, **options)


def test_what_a_script_sees_of_itself(tmp_path):
    seen = _same_script(
        tmp_path,
        '''
        """The doc."""
        import sys
        print(__name__, __file__, __doc__, __package__, __spec__)
        print(type(__loader__).__name__, __loader__.name, __builtins__.__name__)
        print(sys.argv, sys.path[0])
        print(sorted(globals()))
        print(sys.modules["__main__"].__dict__ is globals(), sys.modules["__main__"].__file__)
        print(sys._getframe().f_back, sys._getframe().f_code.co_name, sys.orig_argv[-1])
        ''',
        "a",
        "-b",
        "--c=d e",
        "",
    )
    assert seen["status"] == 0 and "['script.py', 'a', '-b', '--c=d e', '']" in seen["out"]


def test_script_in_a_folder(tmp_path):
    _write(tmp_path, "sub/helper.py", "value = 'from helper'\n")
    source = "import sys, helper\nprint(helper.value, sys.path[0], __file__)\n"
    _write(tmp_path, "sub/main.py", source)
    assert "from helper" in _same(tmp_path, "sub/main.py")["out"]
    assert "from helper" in _same(tmp_path, str(tmp_path / "sub" / "main.py"))["out"]


def test_main_guard_and_import_of_main(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        x = 5
        def main():
            from __main__ import x as again
            print("main", again)
        if __name__ == "__main__":
            main()
        else:
            print("imported")
        """,
    )
    assert seen["out"] == "main 5\n"


EXITS = [
    "sys.exit()",
    "sys.exit(None)",
    "sys.exit(0)",
    "sys.exit(3)",
    "sys.exit(-1)",
    "sys.exit(True)",
    "sys.exit(256 + 7)",
    "sys.exit('a message')",
    "sys.exit([1, 2])",
    "sys.exit(1.5)",
    "sys.exit((3,))",
    "sys.exit(2**70)",
    "raise SystemExit",
    "raise SystemExit(4)",
    "raise SystemExit(1, 2)",
    "(lambda: sys.exit(9))()",
    "exit(5)",
    "os._exit(6)",
    "os.kill(os.getpid(), 15)",
    "raise type('E', (SystemExit,), {})(8)",
    "raise KeyboardInterrupt",
]


@pytest.mark.parametrize("statement", EXITS)
def test_exit_status(tmp_path, statement):
    _same_script(tmp_path, f"import os, sys\nprint('before', flush=True)\n{statement}\n")


def test_exit_runs_finally_and_finalisers(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import sys
        class D:
            def __del__(self):
                print("del")
        def f():
            d = D()
            try:
                sys.exit(4)
            finally:
                print("finally")
        f()
        """,
    )
    assert seen["status"] == 4 and seen["out"] == "finally\ndel\n"


UNCAUGHT = {
    "plain": "1 / 0",
    "nested": """
        def f(x):
            return g(
                x
            ) + 1
        def g(x):
            return {"k": x}["missing"]
        class C:
            y = [f(i) for i in range(3)]
        """,
    "chained": """
        def f():
            try:
                int("x")
            except ValueError as e:
                raise KeyError("k") from e
        try:
            f()
        except KeyError:
            raise RuntimeError("top")
        """,
    "group": """
        raise ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [KeyError("k")])])
        """,
    "group rest": """
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise OSError("in handler")
        """,
    "notes": """
        e = ValueError("v")
        e.add_note("one\\ntwo")
        raise e
        """,
    "through generator": """
        def g():
            yield 1
            yield 1 / 0
        print(list(x for x in g()))
        """,
    "through native": """
        def key(x):
            return x.nope
        sorted([1, 2], key=key)
        """,
    "through with": """
        import contextlib
        @contextlib.contextmanager
        def cm():
            try:
                yield
            finally:
                print("left")
        with cm(), cm():
            raise LookupError("inside")
        """,
    "in coroutine": """
        import asyncio
        async def f():
            await asyncio.sleep(0)
            raise ValueError("async")
        asyncio.run(f())
        """,
    "in exec": "exec(compile('def f():\\n  1/0\\nf()', '<made>', 'exec'))",
    "unicode": "naïve = 'é☃'\nraise ValueError(naïve, '\\udcff')",
    "syntax error in script": "x = 1\nif x\n    pass",
    "indentation error": "def f():\npass",
    "name error with suggestion": "value = 1\nprint(vlaue)",
    "attribute error with suggestion": "import sys\nsys.exitt()",
    "import error": "import no_such_module_anywhere",
    "import error from": "from os import no_such_name",
    "str raises": """
        class E(Exception):
            def __str__(self):
                raise ValueError("in str")
        raise E
        """,
    "base exception": "class E(BaseException): pass\nraise E('base')",
    "generator exit": "raise GeneratorExit",
    "stop iteration": "next(iter(()))",
    "assertion": "def f(x):\n    assert x > 1, 'too small'\nf(0)",
    "raise in class body": "class A:\n    class B:\n        x = undefined",
    "memory error": "raise MemoryError",
}


@pytest.mark.parametrize("name", UNCAUGHT)
def test_uncaught_exception_prints_the_same(tmp_path, name):
    seen = _same_script(tmp_path, UNCAUGHT[name])
    assert seen["status"] == 1 and seen["err"]


def test_uncaught_in_imported_module(tmp_path):
    _write(tmp_path, "broken.py", "def f():\n    raise ValueError('in module')\nf()\n")
    _write(tmp_path, "wrong.py", "def f(:\n")
    seen = _same_script(tmp_path, "import broken")
    assert "broken.py" in seen["err"] and "stator" not in seen["err"]
    assert "SyntaxError" in _same_script(tmp_path, "import wrong")["err"]


def test_recursion_error_is_printed(tmp_path):
    """How deep it got depends on what was below; that it got there does not."""
    seen = _same_script(
        tmp_path,
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        clean=lambda text: re.sub(r"repeated \d+ more", "repeated N more", text),
    )
    assert "RecursionError" in seen["err"]


def test_deep_recursion_with_raised_limit(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import sys
        sys.setrecursionlimit(20000)
        def f(n):
            return 0 if n == 0 else 1 + f(n - 1)
        print(f(8000))
        """,
    )
    assert seen["out"] == "8000\n"


def test_excepthooks(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import sys, threading
        def hook(kind, value, tb):
            print("hook", kind.__name__, value, tb.tb_lineno, tb.tb_next is None)
        sys.excepthook = hook
        class D:
            def __del__(self):
                raise ValueError("unraisable")
        D()
        t = threading.Thread(target=lambda: 1 / 0)
        t.start()
        t.join()
        raise LookupError("to the hook")
        """,
    )
    assert seen["status"] == 1
    assert "hook LookupError to the hook 13 True" in seen["out"]


def test_excepthook_that_fails(tmp_path):
    _same_script(
        tmp_path,
        "import sys\ndef hook(*a):\n    raise KeyError('hook')\nsys.excepthook = hook\n1 / 0\n",
    )


def test_standard_input(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import sys
        name = input("name? ")
        print("hello", name)
        print([line.strip() for line in sys.stdin])
        try:
            input()
        except EOFError as e:
            print("end", e)
        """,
        stdin="World\none\ntwo\n",
    )
    assert "hello World" in seen["out"]


def test_print_to_stderr_and_flush_order(tmp_path):
    _same_script(
        tmp_path,
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('no newline')",
    )


def test_atexit_and_threads(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import atexit, threading, time
        atexit.register(print, "registered first, runs last")
        @atexit.register
        def second():
            print("second")
            raise ValueError("in atexit")
        def work():
            time.sleep(0.05)
            print("thread done")
        threading.Thread(target=work).start()
        print("main done")
        """,
    )
    assert seen["out"].splitlines() == [
        "main done",
        "thread done",
        "second",
        "registered first, runs last",
    ]


def test_atexit_after_an_error(tmp_path):
    _same_script(
        tmp_path,
        "import atexit, sys\natexit.register(lambda: print('exit', sys.exc_info()))\n1 / 0\n",
    )


def test_finalisers_at_shutdown(tmp_path):
    _same_script(
        tmp_path,
        """
        class D:
            def __init__(self, n): self.n = n
            def __del__(self): print("del", self.n)
        a = D("global")
        def gen():
            try:
                yield 1
            finally:
                print("generator closed")
        g = gen()
        next(g)
        print("end of script")
        """,
    )


def test_warnings_name_the_script(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import warnings
        def f():
            warnings.warn("from f", stacklevel=2)
        f()
        warnings.warn("old", DeprecationWarning)
        x = "\\d"
        """,
    )
    assert "script.py:5: UserWarning: from f" in seen["err"]


def test_pickle_and_inspect_of_main(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import dataclasses, inspect, pickle, typing
        @dataclasses.dataclass
        class P:
            x: int
            y: "P | None" = None
        def f(a, b=2):
            return a
        print(pickle.loads(pickle.dumps(P(1, P(2)))), P.__module__)
        print(inspect.getsource(f), inspect.signature(f), typing.get_type_hints(P))
        print(inspect.getmodule(f).__name__, inspect.stack()[0].function, len(inspect.stack()))
        """,
    )
    assert seen["status"] == 0 and "return a" in seen["out"]


def test_fork_and_subprocess(tmp_path):
    _same_script(
        tmp_path,
        """
        import os, subprocess, sys
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            print("child", sum(range(10)), flush=True)
            os._exit(7)
        print("parent", os.waitpid(pid, 0)[1] >> 8)
        print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True).stdout)
        """,
    )


def test_multiprocessing_spawn(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import multiprocessing
        def square(x):
            return x * x
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(square, [1, 2, 3]))
        """,
    )
    assert seen["out"] == "[1, 4, 9]\n"


def test_unittest_program(tmp_path):
    seen = _same_script(
        tmp_path,
        """
        import unittest
        class T(unittest.TestCase):
            def test_ok(self):
                with self.assertRaises(ZeroDivisionError):
                    1 / 0
            def test_bad(self):
                for i in range(2):
                    with self.subTest(i=i):
                        self.assertEqual(i, 1)
        if __name__ == "__main__":
            unittest.main()
        """,
        "-v",
        clean=lambda text: re.sub(r"in \d+\.\d+s", "in Ns", text),
    )
    assert seen["status"] == 1 and "test_ok" in seen["err"]


def test_source_encoding_and_future(tmp_path):
    (tmp_path / "latin.py").write_bytes(b"# coding: latin-1\nprint('caf\xe9')\n")
    assert _same(tmp_path, "latin.py")["out"] == "café\n"
    (tmp_path / "bad.py").write_bytes(b"print('caf\xe9')\n")
    plain, ours = _run(tmp_path, "bad.py"), _run(tmp_path, *STATOR, "bad.py")
    assert plain["status"] == ours["status"] == 1
    assert "SyntaxError" in plain["err"] and "SyntaxError" in ours["err"]
    _same_script(
        tmp_path,
        "from __future__ import annotations\ndef f(x: undefined): pass\nprint(f.__annotations__)\n",
    )


# -- modules -------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path):
    _write(tmp_path, "pkg/__init__.py", "print('package', __name__)\nvalue = 1\n")
    _write(
        tmp_path,
        "pkg/tool.py",
        """
        import sys
        from . import value
        from .sub import deep
        from .sub.deep import number
        print(__name__, __package__, __spec__.name, __file__.endswith("tool.py"))
        print([sys.argv[0].endswith("tool.py"), *sys.argv[1:]], value, number, deep.up)
        if __name__ == "__main__":
            print("as main", sys.path[0])
        """,
    )
    _write(tmp_path, "pkg/sub/__init__.py", "")
    _write(tmp_path, "pkg/sub/deep.py", "from .. import value as up\nfrom ...pkg import value\n")
    _write(tmp_path, "pkg/fails.py", "def f():\n    raise ValueError('in module')\nf()\n")
    _write(tmp_path, "pkg/leaves.py", "import sys\nsys.exit('leaving')\n")
    _write(tmp_path, "runs/__init__.py", "")
    _write(tmp_path, "runs/__main__.py", "print('main of package', __name__, __package__)\n")
    return tmp_path


def test_module(package):
    """The relative import beyond the top is an ImportError, printed alike."""
    seen = _same(package, "-m", "pkg.tool", "x", "-y")
    assert seen["status"] == 1 and "beyond top-level package" in seen["err"]
    _write(package, "pkg/sub/deep.py", "from .. import value as up\nnumber = 7\n")
    seen = _same(package, "-m", "pkg.tool", "x", "-y")
    assert seen["status"] == 0 and "[True, 'x', '-y'] 1 7 1" in seen["out"]


MODULES = ["runs", "pkg.fails", "pkg.leaves", "pkg", "pkg.missing", "no.such"]


@pytest.mark.parametrize("name", MODULES)
def test_modules_good_and_bad(package, name):
    seen = _same(package, "-m", name)
    assert (seen["status"] == 0) == (name == "runs")


def test_standard_library_module(tmp_path):
    seen = _same(tmp_path, "-m", "json.tool", "--sort-keys", stdin='{"b": [1, 2], "a": null}')
    assert seen["out"].startswith('{\n    "a": null')
    assert _same(tmp_path, "-m", "json.tool", stdin="{bad")["status"] != 0


def test_folder_and_zip(tmp_path):
    source = "import sys, other\nprint(__name__, other.x, sys.argv[1:], sys.path[0])\n"
    _write(tmp_path, "app/__main__.py", source)
    _write(tmp_path, "app/other.py", "x = 5\n")
    assert "5 ['a']" in _same(tmp_path, "app", "a")["out"]
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for name in ("__main__.py", "other.py"):
            archive.write(tmp_path / "app" / name, name)
    assert "5 ['b']" in _same(tmp_path, "app.zip", "b")["out"]
    (tmp_path / "empty").mkdir()
    assert _same(tmp_path, "empty")["status"] == 1


def test_missing_script(tmp_path):
    seen = _same(tmp_path, "not_there.py")
    assert seen["status"] == 2 and "can't open file" in seen["err"]


def test_no_arguments_is_a_clear_error(tmp_path):
    for arguments in ([], ["-m"], ["--no-such-option"]):
        seen = _run(tmp_path, *STATOR, *arguments)
        assert seen["status"] == 2 and "usage" in seen["err"] and "Traceback" not in seen["err"]


# -- signals -------------------------------------------------------------------------------------


def _interrupted(folder, name, *before):
    """Start a program, wait until it says so, send SIGINT; what it then printed, and its end."""
    child = subprocess.Popen(
        [sys.executable, *before, name],
        cwd=folder,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # so that it is in its loop, not still on the line that prints
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT)
    finally:
        child.kill()
    carets = re.compile(r"^ *[~^]+\n", re.MULTILINE)
    return {"status": child.returncode, "out": out, "err": carets.sub("", err)}


INTERRUPTED = {
    "loop": "print('ready', flush=True)\nwhile True: pass\n",
    "function": """
        def f():
            print("ready", flush=True)
            while True: pass
        f()
        """,
    "calls": """
        def g(): return 1
        def f():
            print("ready", flush=True)
            while True: g() if 0 else None
        f()
        """,
    "sleep": "import time\nprint('ready', flush=True)\ntime.sleep(100)\n",
    "handled": """
        import sys
        try:
            print("ready", flush=True)
            while True: pass
        except KeyboardInterrupt:
            print("interrupted", sys.exc_info()[0].__name__)
            sys.exit(5)
        finally:
            print("finally")
        """,
    "own handler": """
        import signal, sys
        def handler(number, frame):
            print("handler", number, frame.f_code.co_name)
            raise LookupError("from handler")
        signal.signal(signal.SIGINT, handler)
        def f():
            print("ready", flush=True)
            while True: pass
        f()
        """,
    "generator": """
        def g():
            try:
                print("ready", flush=True)
                while True: pass
                yield
            finally:
                print("closed")
        next(g())
        """,
    "atexit": """
        import atexit
        atexit.register(print, "at exit")
        print("ready", flush=True)
        while True: pass
        """,
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_keyboard_interrupt(tmp_path, name):
    _write(tmp_path, "script.py", INTERRUPTED[name])
    plain = _interrupted(tmp_path, "script.py")
    ours = _interrupted(tmp_path, "script.py", *STATOR)
    _assert_same(plain, ours)
    assert "stator" not in ours["err"]


def test_signal_kills(tmp_path):
    _same_script(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")

"""The layers of the package: imports point down, and to the front of other packages.

A room is a package or a module directly below ``lpcfg_sk``. The graph of imports is
read from the source, imports inside functions included.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

import lpcfg_sk

ROOT = Path(lpcfg_sk.__file__).parent

#: Lower rooms are imported by higher ones. Rooms of one layer may import each other.
LAYERS = {
    "_kernels": 0,
    "_files": 1,
    "_interrupts": 0,
    "_parallel": 1,
    "_ragged": 1,
    "_svd": 1,
    "_validation": 1,
    "_warnings": 1,
    "exceptions": 1,
    "treebank": 2,
    "features": 3,
    "metrics": 3,
    "testing": 3,
    "automata": 4,
    "cfg": 4,
    "lpcfg": 4,
    "parsing": 5,
    "_base": 6,
    "em": 7,
    "pivot": 7,
    "spectral": 7,
    "_pipeline": 8,
    "bounds": 9,
    "datasets": 9,
    "ensemble": 9,
    "inspection": 9,
    "language_model": 9,
    "model_selection": 9,
    "persistence": 9,
    "semi_supervised": 9,
    "_cli": 10,
    "spacy": 10,
    "__main__": 11,
}

#: Uses of the lazy namespace ``lpcfg_sk.Name``: beginning of a path, and the name.
LAZY_NAMES = {
    ("", "__version__"),
    ("_validation.py", "persistence"),
    ("automata/", "PCFG"),
    ("cfg/_parsing.py", "parsing"),
    ("lpcfg/_lpcfg.py", "WTA"),
    ("lpcfg/_lpcfg.py", "inspection"),
    ("lpcfg/_lpcfg.py", "parsing"),
}

#: Modules that import others by name while they run.
DYNAMIC_IMPORTS = {"__init__.py", "_cli/__init__.py"}

MOST_PRIVATE_IMPORTS = 30


class Import(NamedTuple):
    path: str
    line: int
    target: str
    inside_function: bool

    @property
    def importer(self):
        return room_of_path(self.path)

    @property
    def imported(self):
        return self.target.split(".")[1]


def read_package(root=ROOT):
    """Syntax trees of all modules by their path below the root."""
    return {
        path.relative_to(root).as_posix(): ast.parse(path.read_text())
        for path in sorted(root.rglob("*.py"))
    }


def room_of_path(path):
    return path.split("/")[0].removesuffix(".py")


def module_name(path):
    parts = ["lpcfg_sk", *path.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(trees):
    """All imports of modules below ``lpcfg_sk``, in the order of the source."""
    modules = {module_name(path) for path in trees}
    return [
        Import(path, line, target, inside)
        for path, tree in trees.items()
        for statement, inside in statements(tree)
        for line, target in targets(statement, path, modules)
    ]


def statements(node, inside_function=False):
    for child in ast.iter_child_nodes(node):
        yield child, inside_function
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from statements(child, inside_function or is_function)


def targets(statement, path, modules):
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom):
        base = statement.module or ""
        if statement.level:
            package = ["lpcfg_sk", *path.split("/")][: -statement.level]
            base = ".".join([*package, base]).rstrip(".")
        names = [f"{base}.{alias.name}" for alias in statement.names]
        names = [name if name in modules else base for name in names]
    else:
        return
    for name in dict.fromkeys(names):
        if name.startswith("lpcfg_sk."):
            yield statement.lineno, name


def room_graph(imports):
    graph = {}
    for found in imports:
        if found.importer not in ("__init__", found.imported):
            graph.setdefault(found.importer, set()).add(found.imported)
    return graph


def find_cycle(graph):
    """Rooms of some cycle, the first one again at the end; empty without any."""
    done = set()

    def walk(room, trail):
        if room in trail:
            return [*trail[trail.index(room) :], room]
        if room in done:
            return []
        for other in sorted(graph.get(room, ())):
            if cycle := walk(other, [*trail, room]):
                return cycle
        done.add(room)
        return []

    return next((cycle for room in sorted(graph) if (cycle := walk(room, []))), [])


def upward_imports(imports, layers=LAYERS):
    return [
        f"{found.path}:{found.line} imports {found.target}"
        for found in imports
        if found.importer != "__init__"
        and layers[found.imported] > layers[found.importer]
    ]


def late_imports(imports):
    return [
        f"{found.path}:{found.line} imports {found.target}"
        for found in imports
        if found.inside_function
    ]


def private_imports(imports):
    """Imports of private modules of another package; kernels have no front door."""
    return [
        f"{found.path}:{found.line} imports {found.target}"
        for found in imports
        if found.imported not in ("_kernels", found.importer)
        and any(part.startswith("_") for part in found.target.split(".")[2:])
    ]


def without_docstring(trees):
    return [path for path, tree in trees.items() if not ast.get_docstring(tree)]


def checks_for_shards(trees):
    """Calls of ``isinstance`` that ask for a ShardedTreebank, outside treebank."""
    return [
        f"{path}:{node.lineno}"
        for path, tree in trees.items()
        if room_of_path(path) != "treebank"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and "ShardedTreebank" in names_in(node)
    ]


def names_in(node):
    return {
        getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node)
    } - {None}


def lazy_names(trees, allowed=LAZY_NAMES):
    """Uses of names of the top-level namespace that are not allowed."""
    uses = []
    modules = {module_name(path) for path in trees}
    for path, tree in trees.items():
        attributes = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                attributes[node.value] = node.attr
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == "lpcfg_sk":
                # The namespace itself, as in getattr, gives any name.
                uses.append((path, node.lineno, attributes.get(node, "*")))
            elif isinstance(node, ast.ImportFrom) and node.module == "lpcfg_sk":
                names = {alias.name for alias in node.names}
                names = {name for name in names if f"lpcfg_sk.{name}" not in modules}
                uses += [(path, node.lineno, name) for name in sorted(names)]
            elif isinstance(node, ast.Import):
                renamed = [a for a in node.names if a.name == "lpcfg_sk" and a.asname]
                uses += [(path, node.lineno, f"as {a.asname}") for a in renamed]
    return [
        f"{path}:{line} uses lpcfg_sk.{name}"
        for path, line, name in uses
        if not any(path.startswith(p) and name == n for p, n in allowed)
    ]


def dynamic_imports(trees, allowed=DYNAMIC_IMPORTS):
    return [
        path
        for path, tree in trees.items()
        if path not in allowed and names_in(tree) & {"import_module", "__import__"}
    ]


def assert_none(violations):
    assert not violations, "\n".join(violations)


TREES = read_package()
IMPORTS = find_imports(TREES)


def test_every_room_has_a_layer():
    rooms = {room_of_path(path) for path in TREES} - {"__init__"}
    assert rooms <= LAYERS.keys()


def test_no_cycle_of_rooms():
    assert find_cycle(room_graph(IMPORTS)) == []


def test_imports_point_down():
    assert_none(upward_imports(IMPORTS))


def test_no_imports_inside_functions():
    assert_none(late_imports(IMPORTS))
    assert_none(dynamic_imports(TREES))


def test_packages_are_imported_by_their_front_door():
    private = private_imports(IMPORTS)
    assert len(private) <= MOST_PRIVATE_IMPORTS, "\n".join(private)


def test_every_module_has_a_docstring():
    assert_none(without_docstring(TREES))


def test_only_the_treebank_knows_of_shards():
    assert_none(checks_for_shards(TREES))


def test_the_lazy_namespace_is_for_users():
    assert_none(lazy_names(TREES))


# The checks themselves, on small packages.


def imports_of(**sources):
    """Imports of a package with the given modules; ``__`` separates room and leaf."""
    paths = {name.replace("__", "/", 1) + ".py": text for name, text in sources.items()}
    return find_imports({path: ast.parse(text) for path, text in paths.items()})


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("import lpcfg_sk.em._run", "lpcfg_sk.em._run"),
        ("from lpcfg_sk.em._run import step", "lpcfg_sk.em._run"),
        ("from lpcfg_sk.em import _run", "lpcfg_sk.em._run"),
        ("from lpcfg_sk.em import PCFG", "lpcfg_sk.em"),
        ("from lpcfg_sk import em", "lpcfg_sk.em"),
        ("from ..em import _run", "lpcfg_sk.em._run"),
        ("from ._leaf import x", "lpcfg_sk.cfg._leaf"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_imports_are_found(statement, target, inside):
    text = f"class A:\n    def f(self):\n        {statement}" if inside else statement
    found = imports_of(cfg___cfg=text, cfg___leaf="", em="", em___run="")
    assert [(f.path, f.target, f.inside_function) for f in found] == [
        ("cfg/_cfg.py", target, inside)
    ]


@pytest.mark.parametrize("statement", ["import lpcfg_sk", "import numpy.linalg"])
def test_other_imports_do_not_count(statement):
    assert imports_of(cfg___cfg=statement) == []


def test_cycles_are_found():
    a, b, c = (f"import lpcfg_sk.{room}._x" for room in ("a", "b", "c"))
    assert find_cycle(room_graph(imports_of(a___x=b, b___x=c, c___x=""))) == []
    cyclic = imports_of(z___x=a, a___x=b, b___x=c, c___x=f"def f():\n    {a}")
    assert find_cycle(room_graph(cyclic)) == ["a", "b", "c", "a"]
    within = imports_of(a___x="import lpcfg_sk.a._y", a___y=a)
    assert find_cycle(room_graph(within)) == []


def test_upward_late_and_private_imports_are_found():
    up, down = "from lpcfg_sk.em import x", "from lpcfg_sk.cfg import x"
    assert upward_imports(imports_of(cfg___cfg=up)) != []
    assert upward_imports(imports_of(em___em=down)) == []
    assert late_imports(imports_of(em___em=f"def f():\n    {down}")) != []
    assert late_imports(imports_of(em___em=f"if True:\n    {down}")) == []
    private = "from lpcfg_sk.cfg._cfg import CFG"
    assert private_imports(imports_of(em___em=private)) != []
    assert private_imports(imports_of(cfg___other=private)) == []
    assert private_imports(imports_of(em___em=down)) == []
    kernels = (
        "from lpcfg_sk._kernels._em import f\nfrom lpcfg_sk._ragged import offsets"
    )
    assert private_imports(imports_of(em___em=kernels)) == []


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        ("em/_em.py", "isinstance(X, ShardedTreebank)", True),
        ("em/_em.py", "isinstance(X, (Treebank, treebank.ShardedTreebank))", True),
        ("em/_em.py", "isinstance(X, Treebank | ShardedTreebank)", True),
        ("em/_em.py", "isinstance(X, Treebank)", False),
        ("treebank/_validation.py", "isinstance(X, ShardedTreebank)", False),
    ],
)
def test_checks_for_shards_are_found(path, text, wrong):
    assert bool(checks_for_shards({path: ast.parse(text)})) == wrong


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        ("em/_em.py", "import lpcfg_sk\nlpcfg_sk.__version__", False),
        ("em/_em.py", "import lpcfg_sk\nlpcfg_sk.WTA.load(x)", True),
        ("lpcfg/_lpcfg.py", "import lpcfg_sk\nlpcfg_sk.WTA.load(x)", False),
        ("lpcfg/_lpcfg.py", "import lpcfg_sk\nlpcfg_sk.EMLPCFG()", True),
        ("lpcfg/_lpcfg.py", "import lpcfg_sk\ngetattr(lpcfg_sk, name)", True),
        ("em/_em.py", "from lpcfg_sk import PCFG", True),
        ("em/_em.py", "from lpcfg_sk import __version__", False),
        ("em/_em.py", "from lpcfg_sk import em", False),
        ("em/_em.py", "import lpcfg_sk as library\nlibrary.WTA", True),
    ],
)
def test_uses_of_the_lazy_namespace_are_found(path, text, wrong):
    trees = {path: ast.parse(text), "em/__init__.py": ast.parse("")}
    assert bool(lazy_names(trees)) == wrong

"""The texts of all refusals in the code: read from the sources, never run. What differs stands in CAPITALS.

A text that is made in pieces is followed through constants, variables of the same function, and functions of the same
or another module that return a text; what can't be followed is left out, and so are errors that only pass another on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from twopc import errors

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("twopc", "coordinator")
KINDS: dict[str, type[errors.TwoPhaseCommitError]] = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.TwoPhaseCommitError)
}
"""The errors that a user knows; another is known as the one that it is a kind of."""

UNKNOWN = "..."
DEPTH = 4
"""How far a text is followed."""


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """One text, of an error of this class, in this module (a path below the root)."""

    text: str
    kind: str
    module: str


@dataclass(frozen=True)
class Module:
    """The source of one module."""

    path: str
    tree: ast.Module

    @cached_property
    def texts(self) -> dict[str, ast.expr]:
        """Its constants that are a text, and its functions that return one, under the name with parentheses."""
        found: dict[str, ast.expr] = {}
        for statement in self.tree.body:
            match statement:
                case ast.FunctionDef(name) if (returned := _returned(statement)) is not None:
                    found[f"{name}()"] = returned
                case ast.Assign(targets=[ast.Name(name)], value=value) if _is_text(value):
                    found[name] = value
        return found


def _returned(function: ast.FunctionDef) -> ast.expr | None:
    """What a function returns, if that is a text, and one."""
    returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    texts = [value for value in returns if value is not None and _is_text(value)]
    return texts[0] if len(texts) == len(returns) == 1 else None


def _is_text(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left, ast.Add(), right):
            return _is_text(left) or _is_text(right)
        case ast.IfExp(_, body, other):
            return _is_text(body) and _is_text(other)
    return False


@dataclass
class Sources:
    """All modules. A name that several have is that of the module in hand, else of any."""

    modules: list[Module]
    _everywhere: dict[str, ast.expr] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=lambda: {name: name for name in KINDS})

    @classmethod
    def of(cls, root: Path = ROOT) -> Sources:
        paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py") if "_pb2" not in path.name)
        modules = [Module(str(path.relative_to(root)), ast.parse(path.read_text())) for path in paths]
        every = Sources(modules)
        for module in modules:
            for name, value in module.texts.items():
                every._everywhere.setdefault(name, value)
            for node in module.tree.body:
                match node:
                    case ast.ClassDef(name=name, bases=[ast.Name(base), *_]) if base in KINDS:
                        every._kinds.setdefault(name, base)
        return every

    def refusals(self) -> list[Refusal]:
        """Every text once a module, in order."""
        found = {
            Refusal(text, self._kinds[error], module.path)
            for module in self.modules
            for error, argument, names in _raised(module.tree, self._kinds)
            for text in _Reader({**self._everywhere, **module.texts, **names}).texts(argument)
            if _says_something(text)
        }
        return sorted(found)


def _raised(tree: ast.Module, kinds: Collection[str]) -> Iterator[tuple[str, ast.expr, dict[str, ast.expr]]]:
    """Each error that is made, with its text and the texts that the function around it has under names."""
    for function in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        names: dict[str, ast.expr] = {}
        for node in _own_nodes(function):
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=value) if _is_text(value):
                    names[name] = value
                case ast.Call(func=ast.Name(name), args=[argument, *_]) if name in kinds:
                    yield name, argument, names


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, in order, without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


class _Reader:
    """Reads expressions as texts; one that is this or that is two texts."""

    def __init__(self, names: dict[str, ast.expr], depth: int = DEPTH) -> None:
        self._names = names
        self._depth = depth

    def texts(self, value: ast.expr) -> list[str]:
        match value:
            case ast.IfExp(_, body, other):
                return [*self.texts(body), *self.texts(other)]
            case ast.BinOp(left, ast.Add(), right):
                return [first + second for first in self.texts(left) for second in self.texts(right)]
            case ast.JoinedStr(values):
                return ["".join(self._part(part) for part in values)]
            case ast.Constant(str(text)):
                return [text]
        if (known := self._known(value)) is not None:
            return _Reader(self._names, self._depth - 1).texts(known)
        return [_placeholder(value)]

    def _known(self, value: ast.expr) -> ast.expr | None:
        match value:
            case ast.Name(name) if self._depth > 0:
                return self._names.get(name)
            case ast.Call(func=ast.Name(name)) if self._depth > 0:
                return self._names.get(f"{name}()")
            case ast.Call(func=ast.Attribute(ast.Name(name), "format")) if self._depth > 0:
                return self._names.get(name)
        return None

    def _part(self, part: ast.expr) -> str:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        is_followed = inner is part or self._known(inner) is not None
        return self.texts(inner)[0] if is_followed else _placeholder(inner)


def _placeholder(value: ast.expr) -> str:
    """What stands for something that differs: its name in the code, as a placeholder is written in the messages."""
    match value:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.strip("_").upper()
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[joined]):
            return _placeholder(joined)
        case ast.Call(args=[argument]) | ast.Subscript(value=argument):
            return _placeholder(argument)
    return UNKNOWN


def _says_something(text: str) -> bool:
    """Whether there are words of our own: the text of another error, passed on, has none."""
    return len(re.findall(r"\b[a-z]{2,}\b", text)) >= 3

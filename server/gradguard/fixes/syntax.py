"""Small help with libcst nodes."""

from __future__ import annotations

from functools import cache

import libcst as cst


def text_of(node: cst.CSTNode) -> str:
    """The node's source, as `ast.unparse` spells names, attributes and plain subscripts."""
    return _EMPTY().code_for_node(node)


@cache
def _EMPTY() -> cst.Module:
    return cst.Module([])


def expression(text: str) -> cst.BaseExpression:
    """An expression from its source."""
    return cst.parse_expression(text)


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that can stand as an operand or before a dot."""
    if node.lpar or isinstance(node, _ATOMS):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Subscript,
    cst.Call,
    cst.Integer,
    cst.Float,
    cst.SimpleString,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.DictComp,
    cst.SetComp,
)


def method(node: cst.BaseExpression, name: str) -> cst.Call:
    """`node.name()`. Parentheses of the node stay inside."""
    receiver = parenthesized(node)
    if isinstance(receiver, (cst.Integer, cst.Float)):
        receiver = receiver.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(receiver, cst.Name(name)))


def argument(call: cst.Call, keyword: str) -> cst.Arg | None:
    """A keyword argument of a call."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == keyword), None)


def without_argument(call: cst.Call, which: str | cst.Arg) -> cst.Call:
    """A call without one of its arguments, commas and line breaks in order."""
    gone = argument(call, which) if isinstance(which, str) else which
    args = [arg for arg in call.args if arg is not gone]
    if args and call.args[-1] is gone:
        args[-1] = args[-1].with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    if not args:
        return call.with_changes(args=args, whitespace_before_args=cst.SimpleWhitespace(""))
    return call.with_changes(args=args)

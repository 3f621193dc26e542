"""The rules as settings, comments and reports name them: codes, prefixes of codes, and names.

A selector is what people write: `GG101`, `inplace-on-saved-tensor`, a prefix such as `GG1`, or `ALL`.
"""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass

ALL = "ALL"

LONGEST = 60
"""Characters of a selector that a message quotes; no rule has a longer name."""


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What settings and reports need to know of a rule."""

    code: str
    name: str
    summary: str = ""
    on: bool = True
    """False when the rule speaks only after it was asked for by name, code or level."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All rules, in the order of their codes."""

    rules: tuple[RuleInfo, ...]

    def rule(self, selector: str) -> RuleInfo | None:
        """The one rule with this code or name."""
        wanted = selector.strip()
        if len(wanted) > LONGEST:
            return None
        for rule in self.rules:
            if wanted.upper() == rule.code or wanted.lower() == rule.name:
                return rule
        return None

    def resolve(self, selector: str) -> frozenset[str]:
        """Codes that a selector stands for; empty when it names no rule."""
        rule = self.rule(selector)
        if rule is not None:
            return frozenset((rule.code,))
        wanted = selector.strip().upper()
        if wanted == ALL:
            return frozenset(rule.code for rule in self.rules)
        if not wanted.startswith("GG"):
            return frozenset()
        return frozenset(rule.code for rule in self.rules if rule.code.startswith(wanted))

    def choose(self, selector: str) -> frozenset[str]:
        """Codes that a selector switches on: a prefix leaves out the rules that must be asked for by name."""
        codes = self.resolve(selector)
        if len(codes) == 1 or selector.strip().upper() == ALL:
            return codes
        return frozenset(rule.code for rule in self.rules if rule.on and rule.code in codes)

    def nearest(self, selector: str) -> str | None:
        """The code or name that was probably meant."""
        if len(selector) > LONGEST:
            return None
        names = [rule.name for rule in self.rules]
        codes = [rule.code for rule in self.rules]
        wanted = selector.strip()
        for known, word in ((names, wanted.lower()), (codes, wanted.upper())):
            close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
            if close:
                return close[0]
        return None

    def unknown(self, selector: str, *, hint: bool = True) -> str:
        """The message for a selector that names no rule; `hint` says which one was probably meant, which takes long."""
        near = self.nearest(selector) if hint else None
        meant = f'; did you mean "{near}"?' if near else ""
        return f'unknown rule "{quoted(selector)}"{meant}'


def quoted(selector: str) -> str:
    """A selector as messages quote it."""
    return selector if len(selector) <= LONGEST else selector[: LONGEST - 3] + "..."


@functools.cache
def catalogue() -> Catalogue:
    """The rules of this version."""
    # Loads every rule, and with them the engine.
    from gradguard.rules import registry

    return Catalogue(
        tuple(
            sorted(
                (
                    RuleInfo(code=rule.code, name=rule.name, summary=rule.summary, on=rule.on)
                    for rule in registry.rules()
                ),
                key=lambda info: info.code,
            )
        )
    )

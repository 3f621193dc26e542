"""Structural keys: equal where values are made alike, and no larger than what is new in them."""

from __future__ import annotations

from gradguard.engine.domain.conditions import key_of
from gradguard.engine.domain.keys import Key, negated, of_setting, root
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import External, ListV, TupleV


def doubled(times: int, start: object = ("#", 1)) -> Key:
    """The key of `a = a + a` so many times."""
    key = Key("op", "Add", start, start)
    for _ in range(times - 1):
        key = Key("op", "Add", key, key)
    return key


def chained(times: int) -> Key:
    """The key of `a = a.b` so many times."""
    key = Key(("#", 1), "attr", "b")
    for _ in range(times - 1):
        key = Key(key, "attr", "b")
    return key


def test_keys_that_are_made_alike_are_equal() -> None:
    assert doubled(3) == doubled(3)
    assert doubled(3) != doubled(4)
    assert doubled(3) != doubled(3, ("#", 2))
    assert len({doubled(3), doubled(3), doubled(4)}) == 2


def test_keys_of_shared_parts_are_compared_once_for_each_part() -> None:
    """Sixty doublings have 2**60 parts, of which sixty are different ones."""
    assert doubled(60) == doubled(60)
    assert doubled(60) != doubled(60, ("#", 2))


def test_equal_keys_share_their_parts_from_then_on() -> None:
    one, other = doubled(60), doubled(60)
    assert one == other
    assert one.parts is other.parts


def test_keys_may_be_as_deep_as_a_program_is_long() -> None:
    assert chained(50_000) == chained(50_000)
    assert chained(50_000) != chained(50_001)
    assert len(repr(chained(50_000))) < 100


def test_small_keys_are_written_out() -> None:
    assert repr(Key("not", ("#", 1))) == "('not', ('#', 1))"
    assert repr(doubled(60)) == repr(doubled(60))


def test_a_key_knows_what_it_begins_with() -> None:
    assert root(chained(9)) == ("#", 1)
    assert root(("shape", 3, 0)) == ("shape", 3, 0)
    assert root(Key("not", chained(9)))[0] == "not"


def test_a_setting_shows_through_what_is_made_of_it() -> None:
    assert of_setting(Key("op", "Add", Key(Key("setting", ("#", 1)), "attr", "x"), ("int", 1)))
    assert not of_setting(doubled(9))


def test_an_opposite_is_told_from_what_it_is_the_opposite_of() -> None:
    assert negated(Key("not", chained(2))) == chained(2)
    assert negated(("not", 5)) == 5
    assert negated(chained(2)) is None


def test_large_tuples_have_a_key_of_their_own() -> None:
    small = TupleV((1, TupleV((2, 3))))
    assert token(small) == token(TupleV((1, TupleV((2, 3)))))
    large = TupleV((1,))
    for _ in range(60):
        large = TupleV((large, large))
    assert token(large) == token(large)
    assert token(large) != token(TupleV(large.items))


def test_values_that_live_one_after_the_other_have_different_keys() -> None:
    """Python gives the number of an object that is gone to the next: a condition over one would answer for the other."""
    keys = {key_of(ListV()) for _ in range(9)}
    assert len(keys) == 9


def test_a_name_of_a_library_is_the_same_however_often_it_is_read() -> None:
    one, other = External("enum.RED"), External("enum.RED")
    assert key_of(one) == key_of(other) != key_of(External("enum.GREEN"))

"""From calls to conditions: the shortest text that fits, and doubt where nothing does."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gradguard.ops.conditions import holds
from gradguard.ops.wording import words
from tools.optable.observe_learn import Example, Facts, agrees, learn

ROLES = ("a", "b", "c")


def facts(grads: str = "", alias: str = "", **arguments: object) -> Facts:
    return Facts(frozenset(grads.split()), arguments, {}, frozenset(alias.split()))


def test_always_and_never() -> None:
    assert learn([(facts("a"), True), (facts("b"), True)]) == ("*",)
    assert learn([(facts("a"), False), (facts("b"), False)]) == ()
    assert learn([]) == ()


def test_who_requires_grad_explains_first() -> None:
    seen = [(facts(g, p=len(g)), "b" in g) for g in ("a", "b", "a b")]
    assert learn(seen) == ("b",)


def test_arguments_explain_what_grads_do_not() -> None:
    seen = [(facts("a", training=t, p=p), t and p > 0) for t in (True, False) for p in (0.0, 0.3, 0.5)]
    condition = learn(seen)
    assert agrees(condition, seen)
    assert all("training=True" in clause for clause in condition)


def test_an_alternative_is_two_clauses() -> None:
    seen = [
        (facts(" ".join(g)), "a" in g or "b" in g)
        for n in (1, 2, 3)
        for g in itertools.combinations(ROLES, n)
    ]
    assert set(learn(seen)) == {"a", "b"}


def test_what_nothing_explains_is_left_open() -> None:
    seen = [(facts("a"), True), (facts("a"), False), *[(facts("b"), False)] * 4]
    condition = learn(seen)
    assert holds(condition, facts("a").lookup) is None
    assert holds(condition, facts("b").lookup) is False


def test_what_one_call_did_says_nothing_of_others_while_something_stays_open() -> None:
    seen = [(facts("a"), True), (facts("a"), False), (facts("b"), False), (facts("c"), True)]
    condition = learn(seen)
    assert holds(condition, facts("b").lookup) is None
    assert holds(condition, facts("c").lookup) is None


def test_alias_facts() -> None:
    seen = [(facts(alias="contiguous same_dtype"), True), (facts(alias="same_dtype"), False)]
    assert learn(seen) == ("contiguous",)


def test_true_and_one_are_different_values() -> None:
    seen = [(facts(k=True), True), (facts(k=1), False), (facts(k=None), False)]
    assert agrees(learn(seen), seen)


def test_one_tensor_of_a_list_is_kept_for_the_others() -> None:
    whole, first, both = (frozenset(g.split()) for g in ("list", "list list[0]", "list list[0] list[1]"))
    pair = [(g, i) for g in (whole, first, both) for i in (0, 1)]
    kept = [g != first or i == 1 for g, i in pair]
    seen = [(Facts(g, {}, {}).seen_from("list", i, 2), k) for (g, i), k in zip(pair, kept)]
    assert learn(seen) == ("list.others='all'",)


def test_a_list_requires_grad_where_one_of_its_tensors_does() -> None:
    second = Facts(frozenset({"hx", "hx[1]"}), {}, {})
    assert [second.requires_grad(r) for r in ("hx", "hx[0]", "hx[1]", "x")] == [True, False, True, False]
    assert Facts(frozenset({"hx"}), {}, {}).requires_grad("hx[0]")


def test_an_argument_named_as_a_fact_of_tensors_is_an_argument() -> None:
    assert holds(("dtype=None",), facts(dtype=None).lookup) is True
    assert holds(("dtype=None",), facts(dtype="given").lookup) is False
    assert words(("dtype=None",)) == "if `dtype` is not given"


def test_free_text_is_no_condition() -> None:
    seen = [(facts(equation="ij,jk->ik"), True), (facts(equation="ij->ji"), False)]
    assert learn(seen) == ("?",)


SITUATION = st.builds(
    lambda g, t, p: facts(" ".join(sorted(g)), training=t, p=p),
    st.frozensets(st.sampled_from(ROLES)),
    st.booleans(),
    st.sampled_from([0, 1, 2]),
)


@given(st.lists(st.tuples(SITUATION, st.booleans()), min_size=1, max_size=20))
def test_a_learnt_condition_never_contradicts_what_was_seen(seen: list[Example]) -> None:
    assert agrees(learn(seen), seen)

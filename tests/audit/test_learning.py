"""Models that have learnt nothing are named."""

from gradveil.audit.learning import describe_given, find_unlearnt


def test_an_accuracy_near_chance_is_named() -> None:
    found = find_unlearnt({"none": 0.9, "policy:3-1-7": 0.12}, 0.1, 1000)
    assert len(found) == 1
    assert found[0].startswith("policy:3-1-7: after training the model classifies 12% of 1000 test images")


def test_what_passes_for_chance_depends_on_the_number_of_tests() -> None:
    assert find_unlearnt({"none": 0.5}, 0.25, 12)
    assert not find_unlearnt({"none": 0.5}, 0.25, 200)


def test_given_weights_are_judged() -> None:
    assert describe_given(0.8, 0.1, 1000).endswith("the largest class has 10%")
    assert "trained on" in describe_given(0.1, 0.1, 1000)

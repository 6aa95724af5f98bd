"""What came of a round, in JSON and in words."""

from gradveil.federated.outcomes import Dropped, RoundOutcome, TooFewRepliesError


def test_an_outcome_turns_into_json_and_back() -> None:
    outcome = RoundOutcome(3, 9, (Dropped(None, "no reply within 600 s"),), 1.5, None)
    assert RoundOutcome.from_record(outcome.to_record()) == outcome
    assert str(outcome.dropped[0]) == "an unknown client: no reply within 600 s"


def test_the_error_names_a_few_of_the_dropped() -> None:
    dropped = tuple(Dropped(client, "it replied twice") for client in range(5))
    text = str(TooFewRepliesError(RoundOutcome(3, 5, dropped, None), 10, 6))
    assert text.startswith("round 3 stopped: 5 of 10 replies are valid and 6 are needed (client 0: it replied twice; ")
    assert "; and 2 more)" in text

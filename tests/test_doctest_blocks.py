"""Examples of docstrings become blocks of code on the API pages."""

import pytest

pytest.importorskip("griffe", reason="needs pip install 'gradveil[docs]'")


def test_a_run_of_prompts_is_fenced_to_the_next_blank_line() -> None:
    from scripts.doctest_blocks import fence_examples

    text = "Do it.\n\n>>> f(1)\n2\n\nThen this."
    assert fence_examples(text) == "Do it.\n\n\n```pycon\n>>> f(1)\n2\n```\n\nThen this."


def test_text_without_prompts_is_left_alone() -> None:
    from scripts.doctest_blocks import fence_examples

    assert fence_examples("One.\n\nTwo.") == "One.\n\nTwo."

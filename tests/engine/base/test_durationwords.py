"""Durations as people type and read them."""

import pytest

from gatewright.base.amount import duration_words, parse_duration_words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5 s", 1.5), ("2 min", 120), ("100 ms", 0.1), ("1 h 30 min", 5400), ("2m", 120), ("1 Day", 86400)],
)
def test_what_people_type_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration_words(text) == seconds


@pytest.mark.parametrize("seconds", [0.1, 1.5, 30, 90, 3600, 86_400, 100_000.25])
def test_words_can_be_typed_again(seconds: float) -> None:
    assert parse_duration_words(duration_words(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "a duration is"), ("2 weeks", "column 3: no unit `weeks`"), ("1 s -", "column 5"), ("-1", "column 1")],
)
def test_what_cannot_be_read_is_named_with_its_column(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_duration_words(text)


def test_more_than_ten_years_is_refused() -> None:
    with pytest.raises(ValueError, match="a duration is"):
        parse_duration_words("999999999999 d")

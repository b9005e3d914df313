"""Names within a provider's limits: one for each tool, the same whatever else is listed, and back again."""

import hashlib
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.schema import FORMATS, ToolListing
from gatewright.schema.formats.format import fit_name, fit_names
from gatewright.schema.formats.plain import NAMES

TEXTS = st.one_of(
    st.text(max_size=80), st.text("ab.-_/ é", max_size=5), st.sampled_from(["x" * 65, "x" * 64 + "y", "1", "_", "."])
)
PATTERNS = {
    "mcp": r"[a-zA-Z0-9_.-]{1,128}",
    "openai": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    "genai": r"[a-zA-Z0-9_-]{1,64}",
}


@pytest.mark.parametrize("name", FORMATS)
@given(names=st.lists(TEXTS, max_size=8, unique=True))
def test_every_name_fits_differs_and_comes_back(name: str, names: list[str]) -> None:
    listings = [ToolListing(text, "", {"type": "object"}) for text in names]
    given_names = FORMATS[name].names(listings)
    assert all(re.fullmatch(PATTERNS[name], fitted) for fitted in given_names.values())
    assert len(set(given_names.values())) == len(names)
    reader = FORMATS[name].reader(listings)
    assert [reader.restore(given_names[text], {})[0] for text in names] == names


@given(names=st.lists(TEXTS, max_size=6, unique=True), other=TEXTS)
def test_another_tool_renames_none(names: list[str], other: str) -> None:
    before, after = fit_names(names, NAMES), fit_names([*names, other], NAMES)
    made = {fit_name(name, NAMES) for name in names}
    if other not in made:
        assert {name: after[name] for name in names} == before


@given(names=st.lists(TEXTS, max_size=6, unique=True))
def test_the_order_does_not_matter(names: list[str]) -> None:
    assert fit_names(names, NAMES) == fit_names(reversed(names), NAMES)


def test_a_name_that_fits_stays_and_similar_ones_keep_apart() -> None:
    fitted = fit_names(["a_b", "a.b", "a/b"], NAMES)
    assert fitted["a_b"] == "a_b"
    assert len(set(fitted.values())) == 3
    assert all(name.startswith("a_b") for name in fitted.values())


def test_a_tool_that_bears_a_made_name_keeps_it() -> None:
    made = fit_name("a.b", NAMES)
    fitted = fit_names(["a.b", made], NAMES)
    assert fitted[made] == made
    assert fitted["a.b"] != made


class WeakDigest:
    """A digest whose first 16 digits are the same for everybody."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def hexdigest(self) -> str:
        return "0" * 16 + hashlib.md5(self.data, usedforsecurity=False).hexdigest() * 2


@pytest.fixture
def weak_digest(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fit_name.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("gatewright.schema.formats.format.sha256", WeakDigest)
        yield
    fit_name.cache_clear()


@pytest.mark.usefixtures("weak_digest")
@pytest.mark.parametrize("name", FORMATS)
def test_names_whose_digests_collide_do_not_come_out_alike(name: str) -> None:
    long = ["y" * 200 + end for end in "ab"]
    names = ["a b", "a/b", "a:b", *long]
    assert fit_name("a b", NAMES) == fit_name("a/b", NAMES)
    listings = [ToolListing(text, "", {"type": "object"}) for text in names]
    given_names = FORMATS[name].names(listings)
    assert len(set(given_names.values())) == len(names)
    assert all(re.fullmatch(PATTERNS[name], fitted) for fitted in given_names.values())
    reader = FORMATS[name].reader(listings)
    assert [reader.restore(given_names[text], {})[0] for text in names] == names


@pytest.mark.usefixtures("weak_digest")
def test_a_name_that_two_tools_would_bear_reaches_neither() -> None:
    alone = fit_names(["a b"], NAMES)["a b"]
    assert alone not in fit_names(["a b", "a/b"], NAMES).values()


@pytest.mark.parametrize("name", ["a b", "x" * 65, "", "файл", "a.b"])
def test_a_fitted_name_is_told(name: str) -> None:
    lints = FORMATS["anthropic"].lints(ToolListing(name, "", {"type": "object", "properties": {}}))
    assert [lint.code for lint in lints] == ["name"]

"""Host patterns: which hosts each covers, and which texts are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.policy.verdict import check_host_pattern, host_matches, is_every_host


@pytest.mark.parametrize(
    ("pattern", "host", "port"),
    [
        ("*", "example.com", 80),
        ("*", "10.0.0.1", 80),
        ("*:443", "example.com", 443),
        ("example.com", "example.com", 8080),
        ("Example.COM", "example.com", 80),
        ("example.com", "EXAMPLE.com.", 80),
        ("example.com.", "example.com", 80),
        ("*.example.com", "example.com", 80),
        ("*.example.com", "a.b.Example.com", 80),
        ("example.com:8443", "example.com", 8443),
        ("example.com:1", "example.com", 1),
        ("example.com:65535", "example.com", 65535),
        ("*.example.com:443", "a.example.com", 443),
        ("bücher.example", "xn--bcher-kva.example", 80),
        ("*.xn--bcher-kva.example", "a.bücher.example", 80),
        ("[2606:4700:0::1111]", "2606:4700::1111", 443),
        ("[2606:4700::1111]:443", "[2606:4700::1111]", 443),
        ("1.1.1.1", "0x1.1.257", 80),
    ],
)
def test_pattern_covers_host(pattern: str, host: str, port: int) -> None:
    assert check_host_pattern(pattern) is None
    assert host_matches(pattern, host, port)


@pytest.mark.parametrize(
    ("pattern", "host", "port"),
    [
        ("*:443", "example.com", 80),
        ("example.com", "a.example.com", 80),
        ("*.example.com", "notexample.com", 80),
        ("*.example.com", "example.com.evil.net", 80),
        ("example.com:8443", "example.com", 443),
        ("example.com:8443", "example.com", 0),
        ("[::1]:80", "::1", 81),
        ("1.1.1.1", "1.1.1.2", 80),
        ("*.1", "1.1.1.1", 80),
        ("1.com", "a.1.com", 80),
        ("*", "not a host", 80),
        ("*", "", 80),
    ],
)
def test_pattern_does_not_cover_host(pattern: str, host: str, port: int) -> None:
    assert not host_matches(pattern, host, port)


BARE = "a host pattern is a host without scheme, user or path"
STAR = "`*` stands alone, or as `*.` before a name"
BRACKETS = "an IPv6 address stands in brackets"
PORT = "the port of a host pattern is a number from 1 to 65535"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the host is empty"),
        ("http://example.com", BARE),
        ("example.com/path", BARE),
        ("user@example.com", BARE),
        ("*.*.com", STAR),
        ("a*.example.com", STAR),
        ("**", STAR),
        ("*.", "the host is empty"),
        ("::1", BRACKETS),
        ("a:1:2", BRACKETS),
        ("[::1", "the brackets hold no IPv6 address"),
        ("*.1.1.1.1", "`*.` stands before a name, not before an address"),
        ("example.com:", PORT),
        ("example.com:0", PORT),
        ("example.com:65536", PORT),
        ("example.com:000443", PORT),
        ("example.com:https", PORT),
        ("[::1]:", PORT),
        ("exa mple.com", "the host holds a character that no host has"),
    ],
)
def test_text_that_is_no_pattern_says_why_and_covers_nothing(text: str, said: str) -> None:
    assert check_host_pattern(text) == said
    assert not host_matches(text, "example.com", 443)


def test_only_the_star_alone_is_every_host() -> None:
    assert is_every_host("*")
    assert not any(is_every_host(pattern) for pattern in ("*:443", "*.com", "example.com", ""))


@given(st.text(max_size=80), st.text(max_size=80), st.integers(0, 70_000))
def test_whatever_comes_is_answered(pattern: str, host: str, port: int) -> None:
    assert isinstance(host_matches(pattern, host, port), bool)
    if check_host_pattern(pattern) is not None:
        assert not host_matches(pattern, host, port)

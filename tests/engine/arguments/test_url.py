"""URL arguments: one canonical text, or a refusal that echoes nothing. Real payloads where they are at hand."""

from __future__ import annotations

import json
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewright.arguments.url import (
    MAX_URL_CHARS,
    Host,
    HostRefused,
    UrlRefused,
    UrlTarget,
    parse_host,
    parse_url,
    read_host,
)
from tests.support.patience import in_time

CORPORA = Path(__file__).parents[4] / "shared" / "corpora"
LOOPBACK = [
    "http://127.0.0.1/",
    "http://127.1",
    "http://127.0.1",
    "http://2130706433",
    "http://017700000001",
    "http://0x7f.1",
    "http://0x7f000001",
    "http://0177.0.0.1",
    "http://127.0.0.1.",
    "http://１２７.０.０.１",
    "http://127。0。0。1",
    "http://①②⑦.0.0.1",
    "http://127.0.0.1:8080/x",
    "http://[::1]",
    "http://[0:0:0:0:0:0:0:1]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:7f00:1]",
    "http://[64:ff9b::7f00:1]",
    "http://[2002:7f00:1::]",
    "http://[::127.0.0.1]",
    "http://localhost",
    "http://LOCALHOST.",
    "http://a.localhost",
    "http://lo\u00adcalhost",
    "http://local\u200bhost",
    "http://ｌｏｃａｌｈｏｓｔ",
    "http://localhost.localdomain",
]
OTHER_PRIVATE = [
    "http://0",
    "http://10.0.0.1",
    "http://100.64.0.1",
    "http://168.63.129.16",
    "http://169.254.169.254/latest/meta-data/",
    "http://192.168.1.1",
    "http://198.18.0.1",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://[::]",
    "http://[fc00::1]",
    "http://[fd00:ec2::254]",
    "http://[fe80::1]",
    "http://[ff02::1]",
    "http://[2001::1]",
    "http://[100::1]",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://intranet/",
    "http://router.home.arpa/",
]


NEVER = (
    *("ffff:", "64:ff9b", "2002:", "[::127", "[::]", "168.63", "169.254", "198.18", "224.", "255.", "ec2::254"),
    *("fe80", "ff02", "2001::", "100::"),
)
"""What is link-local, multicast, reserved, unspecified, in disguise, or a cloud's own."""


@pytest.mark.parametrize("text", [*LOOPBACK, *OTHER_PRIVATE])
def test_host_that_is_no_public_place_is_refused(text: str) -> None:
    refused = parse_url(text)
    assert isinstance(refused, UrlRefused)
    assert refused.code == "url-private"


@pytest.mark.parametrize("text", [*LOOPBACK, *OTHER_PRIVATE])
def test_operator_lets_private_networks_and_this_machine_pass_and_nothing_else(text: str) -> None:
    target = parse_url(text, allow_private=True)
    if text == "http://0" or any(part in text for part in NEVER):
        assert isinstance(target, UrlRefused)
    else:
        assert isinstance(target, UrlTarget)
        assert parse_url(target.text, allow_private=True) == target


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "url-empty"),
        ("example.com", "url-form"),
        ("//example.com/", "url-form"),
        ("http:example.com", "url-form"),
        ("http:/example.com", "url-form"),
        ("http:\\\\example.com", "url-form"),
        ("http:///example.com", "url-host"),
        ("http://", "url-host"),
        ("http://?x", "url-host"),
        ("file:///etc/passwd", "url-scheme"),
        ("gopher://example.com/", "url-scheme"),
        ("javascript://example.com/%0aalert(1)", "url-scheme"),
        ("ws://example.com/", "url-scheme"),
        ("http://user@example.com/", "url-user"),
        ("http://user:pw@example.com/", "url-user"),
        ("http://@example.com/", "url-user"),
        ("http://example.com\\@evil.example.net/", "url-backslash"),
        ("http://example.com/a\\..\\b", "url-backslash"),
        ("http://example.com:0/", "url-port"),
        ("http://example.com:65536/", "url-port"),
        ("http://example.com:+80/", "url-port"),
        ("http://example.com:８０/", "url-port"),
        ("http://example.com:80:80/", "url-port"),
        ("http://example%2ecom/", "url-host"),
        ("http://[::1%25eth0]/", "url-host"),
        ("http://[fe80::1%eth0]/", "url-host"),
        ("http://[::1/", "url-host"),
        ("http://[example.com]/", "url-host"),
        ("http://::1/", "url-port"),
        ("http://a..example.com/", "url-host"),
        ("http://exa mple.com/", "url-host"),
        ("http://example.com;evil.example.net/", "url-host"),
        ("http://1.2.3.4.5/", "url-host"),
        ("http://256.256.256.256/", "url-host"),
        ("http://08.8.8.8/", "url-host"),
        ("http://xn--localhost-/", "url-host"),
        ("http://-flag.example.com/", "url-host"),
        (" http://example.com/", "url-control"),
        ("http://exam\tple.com/", "url-control"),
        ("http://example.com/\n", "url-control"),
        ("http://example.com/\x00", "url-control"),
        ("http://example.com/\ud800", "url-surrogate"),
        ("http://example.com/" + "a" * MAX_URL_CHARS, "url-too-long"),
    ],
)
def test_what_readers_disagree_on_is_refused(text: str, code: str) -> None:
    refused = parse_url(text)
    assert isinstance(refused, UrlRefused)
    assert refused.code == code


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example.org/", "https://xn--fa-hia.example.org/"),
        ("https://example.com/public/../admin", "https://example.com/admin"),
        ("https://example.com/public/%2e%2E/admin", "https://example.com/admin"),
        ("https://example.com/../..", "https://example.com/"),
        ("https://example.com/a/./b/.", "https://example.com/a/b/"),
        ("https://example.com//a", "https://example.com//a"),
        ("https://example.com/%61dmin", "https://example.com/admin"),
        ("https://example.com/%2fa%3f", "https://example.com/%2Fa%3F"),
        ("https://example.com/%%34%31", "https://example.com/%2541"),
        ("https://example.com/ä b", "https://example.com/%C3%A4%20b"),
        ("https://example.com?q=ä b#ö", "https://example.com/?q=%C3%A4%20b#%C3%B6"),
        ("https://example.com#@evil.example.net", "https://example.com/#@evil.example.net"),
        ("https://example.com?@evil.example.net/", "https://example.com/?@evil.example.net/"),
        ("http://16843009/", "http://1.1.1.1/"),
        ("https://[2606:4700:0000::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://_dmarc.example.com/", "https://_dmarc.example.com/"),
    ],
)
def test_accepted_url_has_one_canonical_text(text: str, canonical: str) -> None:
    target = parse_url(text)
    assert isinstance(target, UrlTarget)
    assert target.text == canonical
    assert parse_url(canonical) == target


def test_host_and_port_are_what_a_client_connects_to() -> None:
    target = parse_url("https://[2606:4700:0::1111]:8443/x")
    assert isinstance(target, UrlTarget)
    assert (target.scheme, target.host, target.port, target.deferred) == ("https", "2606:4700::1111", 8443, False)
    named = parse_url("http://Example.com/x")
    assert isinstance(named, UrlTarget)
    assert (named.host, named.port, named.deferred) == ("example.com", 80, True)


def test_other_schemes_pass_where_the_parameter_names_them() -> None:
    target = parse_url("WSS://example.com/socket", schemes=("wss",))
    assert isinstance(target, UrlTarget)
    assert (target.text, target.port) == ("wss://example.com/socket", 443)
    assert isinstance(parse_url("https://example.com/", schemes=("wss",)), UrlRefused)


@pytest.mark.parametrize(
    ("text", "canonical", "port"),
    [
        ("Example.com", "example.com", 0),
        ("example.com:8080", "example.com:8080", 8080),
        ("2606:4700::1111", "2606:4700::1111", 0),
        ("[2606:4700::1111]:53", "[2606:4700::1111]:53", 53),
    ],
)
def test_bare_host_may_carry_a_port(text: str, canonical: str, port: int) -> None:
    target = parse_host(text)
    assert isinstance(target, UrlTarget)
    assert (target.text, target.port) == (canonical, port)
    assert parse_host(canonical) == target


@pytest.mark.parametrize("text", ["127.1", "::1", "localhost", "a/b", "user@example.com", "example.com/x", "a:b:c", ""])
def test_bare_host_that_is_private_or_none_is_refused(text: str) -> None:
    assert isinstance(parse_host(text), UrlRefused)


def test_refusal_echoes_nothing() -> None:
    for text in ("http://secret-name@example.com/", "http://secret-name.local/", "secret-name://example.com/"):
        refused = parse_url(text)
        assert isinstance(refused, UrlRefused)
        assert "secret-name" not in refused.hint + refused.reason


@given(st.text(max_size=400))
@example("http://[" + ":" * 300)
@example("http://" + "1." * 150)
@example("http://" + "xn--" * 90)
@example("http://" + "\u0327" * 300)
def test_whatever_comes_is_answered(text: str) -> None:
    for candidate in (text, f"http://{text}", f"https://example.com/{text}", f"http://{text}@1.1.1.1/"):
        target = parse_url(candidate)
        if isinstance(target, UrlTarget):
            assert parse_url(target.text) == target
            assert target.text.isascii()
            assert " " not in target.text


@given(st.integers(0, 2**32 - 1), st.data())
def test_every_notation_of_an_ipv4_address_is_the_same_host(number: int, data: st.DataObject) -> None:
    octets = list(number.to_bytes(4))
    count = data.draw(st.integers(1, 4))
    values = [*octets[: count - 1], int.from_bytes(bytes(octets[count - 1 :]))]
    parts = [data.draw(st.sampled_from([str(v), hex(v), "0" + format(v, "o") if v else "0"])) for v in values]
    dot = data.draw(st.sampled_from([".", "。", "．"]))
    host = read_host(dot.join(parts) + data.draw(st.sampled_from(["", "."])))
    assert isinstance(host, Host)
    assert host.address == ip_address(number)
    assert host.text == str(ip_address(number))


@given(st.ip_addresses(v=4))
def test_addresses_that_python_calls_private_are_never_public_here(address: Any) -> None:
    host = read_host(str(address))
    assert isinstance(host, Host)
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        assert host.local is not None


@given(st.ip_addresses(v=6))
def test_ipv6_addresses_that_python_calls_private_are_never_public_here(address: Any) -> None:
    host = read_host(f"[{address}]")
    assert isinstance(host, Host)
    if address.is_private or address.is_multicast or address.is_reserved or address.is_link_local:
        assert host.local is not None


@given(st.text(max_size=300))
def test_any_text_is_a_host_or_none(text: str) -> None:
    host = read_host(text)
    assert isinstance(host, Host | HostRefused)
    if isinstance(host, Host):
        assert read_host(host.in_url) == host


def test_long_hosts_are_answered_quickly() -> None:
    began = time.process_time()
    for filler in ("a", "1", "ä", "\u0327", ".", "xn--", "[", "0x", "①"):
        parse_url("http://" + filler * (MAX_URL_CHARS // len(filler) - 8))
        parse_url("http://example.com/" + filler * (MAX_URL_CHARS // len(filler) - 20))
    assert in_time(time.process_time() - began, 2.0)


def _corpus(name: str) -> list[dict[str, Any]]:
    file = CORPORA / name
    if not file.exists():
        pytest.skip(f"the corpus `{name}` is not beside this checkout")
    return json.loads(file.read_text(encoding="utf-8"))


def test_no_payload_reaches_a_private_address() -> None:
    rows = _corpus("attack_ssrf_urls.json")
    assert len(rows) > 100
    for row in rows:
        target = parse_url(row["payload"])
        if isinstance(target, UrlRefused):
            continue
        assert row.get("third_party"), row
        assert target.deferred or ip_address(target.host).is_global, row
        assert urlsplit(target.text).hostname == target.host


def test_benign_urls_pass() -> None:
    rows = _corpus("benign_urls.json")
    assert len(rows) > 200
    assert [row["payload"] for row in rows if isinstance(parse_url(row["payload"]), UrlRefused)] == []

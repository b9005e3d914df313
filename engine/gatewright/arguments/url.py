"""Reads a URL argument or a host, in every notation, as one canonical text. It resolves no name.

Reading touches no network. It accepts every notation that browsers and the C library read as an address: fewer than
four numbers, octal, hexadecimal, digits of other scripts, other dots. UTS #46 (package idna) maps names.

A form on which readers of URLs disagree is refused: missing slashes, a backslash or an encoded character before the
path, a user before the host, control characters and spaces around it. The canonical form has scheme and host in lower
case (A-labels, an address in its usual notation), no port that the scheme implies, no ``.`` or ``..`` in the path
however encoded, unreserved characters plain, and every other character that may not stand there percent-encoded.

The parser judges hosts that are addresses; names are looked up, checked and pinned when the call runs. Names that mean
only this machine or network (``localhost``, ``.local``, ``.internal``, one label, ...) are refused like private
addresses, unless the operator allows private ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex

MAX_HOST_CHARS = 1024
_MAX_NAME = 253
_MAX_LABEL = 63
_LABEL = late_regex(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_-])?")
_NUMBER = late_regex(r"[0-9]+|0x[0-9a-f]*")
_FORBIDDEN = late_regex(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}]")

_SPECIAL_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address in disguise"),
        ("64:ff9b::/96", "an IPv4 address in disguise"),
        ("64:ff9b:1::/48", "an IPv4 address in disguise"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "an IPv4 address in disguise"),
        ("3fff::/20", "reserved"),
        ("fd00:ec2::254/128", "a cloud's own service"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    )
)
_LOCAL_NAME = "a name of this machine or network"
"""The kind of a name without a dot, or with one of the suffixes below."""
_PRIVATE = frozenset({"loopback", "private", "shared by a carrier", _LOCAL_NAME})
_LOCAL_SUFFIXES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
)


@frozen
class Host:
    """A host: ``text`` in lower case, without brackets and without a last dot; ``address`` if it is a literal one."""

    text: str
    address: IPv4Address | IPv6Address | None = None

    @property
    def in_url(self) -> str:
        """The spelling inside a URL: IPv6 in brackets."""
        return f"[{self.text}]" if isinstance(self.address, IPv6Address) else self.text

    @property
    def local(self) -> str | None:
        """The kind of local place, judged by the last labels of a name; None if the place may be public."""
        if self.address is None:
            is_local = "." not in self.text or any(f".{self.text}".endswith(f".{end}") for end in _LOCAL_SUFFIXES)
            return _LOCAL_NAME if is_local else None
        if isinstance(self.address, IPv4Address):
            return next((what for network, what in _SPECIAL_V4 if self.address in network), None)
        what = next((what for network, what in _SPECIAL_V6 if self.address in network), None)
        return what if what is not None or self.address in _GLOBAL_V6 else "reserved"

    def refusal(self, *, allow_private: bool) -> str | None:
        """Name the kind of place that the agent may not reach; None if it may.

        ``allow_private`` opens private networks and this machine, but no link-local, reserved or disguised address.
        """
        what = self.local
        return None if allow_private and what in _PRIVATE else what


@frozen
class HostRefused:
    """The reason why a text is no host; ``reason`` quotes nothing from the text."""

    reason: str


def read_host(text: str) -> Host | HostRefused:
    """Read ``text`` as a host, IPv6 in brackets, or explain why it is none. Never raises."""
    if not text:
        return HostRefused("the host is empty")
    if len(text) > MAX_HOST_CHARS:
        return HostRefused("the host is too long")
    if text.startswith("["):
        return _read_ipv6(text)
    if _FORBIDDEN.search(text):
        return HostRefused("the host holds a character that no host has")
    mapped = _map_name(text)
    if isinstance(mapped, HostRefused):
        return mapped
    labels = mapped.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _numeric(labels)
    return _read_name(labels)


def _read_ipv6(text: str) -> Host | HostRefused:
    if not text.endswith("]") or not text.isascii():
        return HostRefused("the brackets hold no IPv6 address")
    if "%" in text:
        return HostRefused("an IPv6 address with a zone is not accepted")
    try:
        address = IPv6Address(text[1:-1])
    except ValueError:
        return HostRefused("the brackets hold no IPv6 address")
    mapped = address.ipv4_mapped
    if mapped is not None:  # newer versions of Python write the last part with dots
        return Host(f"::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}", address)
    return Host(address.compressed, address)


def _map_name(text: str) -> str | HostRefused:
    """Map a name as UTS #46 does: lower case, one kind of dot, plain forms of characters, no invisible ones."""
    mapped = text.lower()
    if not text.isascii():
        import idna  # a large module, which most policies never need

        try:
            mapped = idna.uts46_remap(text, std3_rules=False)
        except (idna.IDNAError, UnicodeError):
            return HostRefused("the host holds a character that no host has")
    if _FORBIDDEN.search(mapped):
        return HostRefused("the host holds a character that no host has")
    return mapped if mapped not in {"", "."} else HostRefused("the host is empty")


def _numeric(labels: list[str]) -> Host | HostRefused:
    """Read an IPv4 address of one to four numbers; the last number fills the remaining bytes."""
    refused = HostRefused("the host ends in a number and is no IPv4 address")
    numbers = [_number(label) for label in labels]
    if len(labels) > 4 or None in numbers:
        return refused
    known = [number for number in numbers if number is not None]
    if any(number > 255 for number in known[:-1]) or known[-1] >= 256 ** (5 - len(known)):
        return refused
    value = known[-1] + sum(number << (24 - 8 * place) for place, number in enumerate(known[:-1]))
    address = IPv4Address(value)
    return Host(str(address), address)


def _number(label: str) -> int | None:
    if not _NUMBER.fullmatch(label) or len(label) > 64:
        return None
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if label.startswith("0") and len(label) > 1:
        return int(label, 8) if set(label) <= set("01234567") else None
    return int(label)


def _read_name(labels: list[str]) -> Host | HostRefused:
    ascii_labels: list[str] = []
    for label in labels:
        ascii_label = label
        if not label.isascii() or label.startswith("xn--"):
            import idna

            try:
                ascii_label = idna.alabel(label).decode("ascii").lower()
            except (idna.IDNAError, UnicodeError):
                return HostRefused("a part of the host name is not acceptable")
        if len(ascii_label) > _MAX_LABEL or not _LABEL.fullmatch(ascii_label):
            return HostRefused("a part of the host name is empty, too long or holds a character that no host has")
        ascii_labels.append(ascii_label)
    name = ".".join(ascii_labels)
    return Host(name) if len(name) <= _MAX_NAME else HostRefused("the host is too long")


MAX_URL_CHARS = 8192
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990, "sftp": 22, "ssh": 22}
WEB_SCHEMES = ("http", "https")

_SCHEME = late_regex(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL = late_regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_AUTHORITY_END = late_regex(r"[/?#]")
_PORT = late_regex(r"[0-9]{1,5}")
_TRIPLET = late_regex(r"%([0-9A-Fa-f]{2})")
_STRAY = late_regex(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = _UNRESERVED | frozenset("!$&'()*+,;=:@/?%")
_PATH_PLAIN = _PLAIN - {"?"}


@frozen
class UrlTarget:
    """An accepted URL. ``text`` is canonical; ``host`` is lower case (A-labels) or a literal address.

    ``deferred``: the host is a name, whose addresses are checked when the call runs. A bare host has scheme ``""`` and
    port 0. ``writes``: the parameter is declared as one that data goes to.
    """

    text: str
    scheme: str
    host: str
    port: int
    parameter: str = ""
    writes: bool = False
    deferred: bool = False


@frozen
class UrlRefused:
    """The reason why a text is not a URL: ``reason`` for the operator, ``hint`` for the model; both echo nothing."""

    code: str
    reason: str
    hint: str


def parse_url(
    text: str,
    *,
    schemes: Collection[str] = WEB_SCHEMES,
    allow_private: bool = False,
    parameter: str = "",
    writes: bool = False,
) -> UrlTarget | UrlRefused:
    """Return the canonical form of ``text``, or the refusal. ``schemes``: keys of ``DEFAULT_PORTS``. Never raises."""
    refused = _text_refusal(text)
    if refused is not None:
        return refused
    found = _SCHEME.match(text)
    if found is None or not text.startswith("//", found.end()):
        return UrlRefused(
            "url-form", "the URL does not begin with a scheme and `//`", "give a whole URL, `https://...`"
        )
    scheme = found[1].lower()
    if scheme not in schemes:
        allowed = ", ".join(f"`{name}`" for name in schemes)
        return UrlRefused("url-scheme", f"the scheme of the URL is none of {allowed}", f"the scheme must be {allowed}")
    end = _AUTHORITY_END.search(text, found.end() + 2)
    stop = end.start() if end is not None else len(text)
    place = _place(text[found.end() + 2 : stop], DEFAULT_PORTS[scheme])
    if isinstance(place, UrlRefused):
        return place
    host, port = place
    refused = _host_refusal(host, allow_private=allow_private)
    if refused is not None:
        return refused
    shown_port = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    rest = _rest(text[stop:])
    if isinstance(rest, UrlRefused):
        return rest
    canonical = f"{scheme}://{host.in_url}{shown_port}{rest}"
    return UrlTarget(canonical, scheme, host.text, port, parameter, writes, host.address is None)


def parse_host(
    text: str, *, allow_private: bool = False, parameter: str = "", writes: bool = False
) -> UrlTarget | UrlRefused:
    """Parse a bare host, perhaps with a port; IPv6 stands in brackets, or alone without a port. Never raises."""
    refused = _text_refusal(text)
    if refused is not None:
        return refused
    place = _place(f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text, 0)
    if isinstance(place, UrlRefused):
        return place
    host, port = place
    refused = _host_refusal(host, allow_private=allow_private)
    if refused is not None:
        return refused
    canonical = f"{host.in_url}:{port}" if port else host.text
    return UrlTarget(canonical, "", host.text, port, parameter, writes, host.address is None)


def _text_refusal(text: str) -> UrlRefused | None:
    if not text:
        return UrlRefused("url-empty", "the address is empty", "give an address")
    if len(text) > MAX_URL_CHARS:
        reason = f"the address is longer than {MAX_URL_CHARS} characters"
        return UrlRefused("url-too-long", reason, "use a shorter address")
    if any("\ud800" <= char <= "\udfff" for char in text):
        return UrlRefused("url-surrogate", "the address holds half of a surrogate pair", "use ordinary characters")
    if _CONTROL.search(text) or text != text.strip():
        reason = "the address holds control characters or has spaces around it"
        return UrlRefused("url-control", reason, "leave control characters and outer spaces out of the address")
    return None


def _place(authority: str, default_port: int) -> tuple[Host, int] | UrlRefused:
    if "\\" in authority:
        return UrlRefused("url-backslash", "a backslash stands before the path of the URL", "separate parts with `/`")
    if "@" in authority:
        return UrlRefused("url-user", "the URL names a user before the host", "leave user and password out of the URL")
    closing = authority.rfind("]")
    colon = authority.find(":", closing + 1) if closing >= 0 or not authority.startswith("[") else -1
    name, port_text = (authority, "") if colon < 0 else (authority[:colon], authority[colon + 1 :])
    port = default_port
    if port_text:
        port = int(port_text) if _PORT.fullmatch(port_text) else 0
        if not 0 < port < 65536:
            return UrlRefused("url-port", "the port is no number from 1 to 65535", "give a port from 1 to 65535")
    if "%" in name:
        reason = "the host holds a percent sign"
        return UrlRefused("url-host", reason, "write the host plainly, without percent-encoding or zone")
    host = read_host(name)
    if isinstance(host, HostRefused):
        return UrlRefused("url-host", host.reason, "give the host as a plain name or address")
    return host, port


def _host_refusal(host: Host, *, allow_private: bool) -> UrlRefused | None:
    local = host.refusal(allow_private=allow_private)
    if local is None:
        return None
    what = "name" if host.address is None else "address"
    reason = f"the host is {local}" if what == "name" else f"the host is an address that is {local}"
    return UrlRefused("url-private", reason, "use a public address; this one is not available to you")


def _rest(text: str) -> str | UrlRefused:
    """Return path, query and fragment; the path is never empty, so that no reader mistakes what follows for the
    host.
    """
    before, hash_sign, fragment = text.partition("#")
    path, question, query = before.partition("?")
    if "\\" in path:
        return UrlRefused("url-backslash", "a backslash stands in the path of the URL", "separate names with `/`")
    path = _resolve_dots(_normalize_escapes(path, _PATH_PLAIN))
    query = question + _normalize_escapes(query, _PLAIN) if question else ""
    return path + query + (hash_sign + _normalize_escapes(fragment, _PLAIN) if hash_sign else "")


def _normalize_escapes(text: str, plain: frozenset[str]) -> str:
    """Percent-encode every character that may not stand in this part, and write the unreserved ones plain."""
    text = _TRIPLET.sub(_normalize_triplet, _STRAY.sub("%25", text))
    return "".join(char if char in plain else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text)


def _normalize_triplet(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if char in _UNRESERVED else f"%{found[1].upper()}"


def _resolve_dots(path: str) -> str:
    """Resolve ``.`` and ``..`` as readers of URLs do; the result never leads above the top."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts and parts[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)

"""A host as one canonical text: a name in A-labels, or a literal address from any notation.

Reading touches no network. It accepts every notation that browsers and the C library read as an address: fewer than
four numbers, octal, hexadecimal, digits of other scripts, other dots. UTS #46 (package idna) maps names.
"""

from __future__ import annotations

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
"""Kind of a name without a dot, or with one of the suffixes below."""
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
        """The kind of local place, judged by the last labels of a name; None for a place that may be public."""
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
    """Why a text is no host; ``reason`` quotes nothing from the text."""

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
    if mapped is not None:  # newer versions of Python write these with dots
        return Host(f"::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}", address)
    return Host(address.compressed, address)


def _map_name(text: str) -> str | HostRefused:
    """Map a name as UTS #46 does: lower case, one kind of dot, plain forms of characters, no invisible ones."""
    mapped = text.lower()
    if not text.isascii():
        import idna  # large, and of no use to most policies

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

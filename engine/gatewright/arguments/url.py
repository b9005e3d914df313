"""URLs and hosts that models send: scheme, host in every notation and port, in one canonical form, without a look-up.

Forms that readers of URLs disagree on are refused: missing slashes, a backslash or an encoded character before the
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

from gatewright.base.frozen import frozen
from gatewright.base.host import Host, HostRefused, read_host
from gatewright.base.late import late_regex

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
    """Return path, query and fragment; the path is never empty, so that no reader takes what follows for the host."""
    before, hash_sign, fragment = text.partition("#")
    path, question, query = before.partition("?")
    if "\\" in path:
        return UrlRefused("url-backslash", "a backslash stands in the path of the URL", "separate names with `/`")
    path = _resolve_dots(_normalize_escapes(path, _PATH_PLAIN))
    query = question + _normalize_escapes(query, _PLAIN) if question else ""
    return path + query + (hash_sign + _normalize_escapes(fragment, _PLAIN) if hash_sign else "")


def _normalize_escapes(text: str, plain: frozenset[str]) -> str:
    """Percent-encode every character that may not stand there, and write the unreserved ones plain."""
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

"""Texts of strangers: tells texts from binary data, knows the verbs in names, and makes texts safe to print on one
line.
"""

from __future__ import annotations

import re
import unicodedata

from gatewright.base.late import late_regex

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STYLES = "\ufe0e\ufe0f"
"""Variation selectors 15 and 16: a symbol as text, as a picture."""
_IGNORED = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0)
_EMPTY = frozenset(map(chr, (*_IGNORED, *range(0xE0100, 0xE01F0), 0x2800, 0x1D159)))
"""Letters, marks and symbols without a visible shape: characters of those categories with
Default_Ignorable_Code_Point in the Unicode Character Database (DerivedCoreProperties.txt), U+2800 and U+1D159."""


def printable(text: str, *, keep: str = "") -> str:
    """Write each control, format (bidi), surrogate, private, unassigned or empty character as ``\\uXXXX``.

    JSON uses the same escapes, so that JSON keeps its value. ``keep``: characters to leave alone; a variation selector
    behind its symbol stays as well.
    """
    if text.isascii() and text.isprintable():
        return text
    unseen = {c for c in set(text) - set(keep) if c in _EMPTY or unicodedata.category(c) in _UNSEEN}
    if not unseen:
        return text
    if unseen.isdisjoint(_STYLES):
        return text.translate({ord(c): _escape(c) for c in unseen})
    shown: list[str] = []
    for before, c in zip(f" {text}", text, strict=False):
        is_style = c in _STYLES and unicodedata.category(before) == "So"
        shown.append(_escape(c) if c in unseen and not is_style else c)
    return "".join(shown)


def is_visible(text: str) -> bool:
    """Tell whether every character is visible and the only kind of space is the plain one, as in a name."""
    return text.isprintable() and printable(text) == text


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_CONTROLS = late_regex(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")

_ANY_BYTES = "application/octet-stream"
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"%PDF-": "application/pdf",
    b"PK\x03\x04": "application/zip",
}


def plain_text(data: bytes) -> str | None:
    """Decode plain UTF-8 text; return None for binary data: other encodings, control characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if _CONTROLS.search(text) is None else None


def media_type(data: bytes) -> str:
    """Return the media type that the first bytes suggest, e.g. `image/png`; else `application/octet-stream`."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], _ANY_BYTES)
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), _ANY_BYTES)


READS = frozenset(
    re.findall(
        r"\w+",
        """
    browse check compare count describe diff directory explain extract fetch find get grep head help history info
    inspect list log logs look lookup ls measure peek preview query read resolve retrieve review scan search show stat
    stats status summarize summary tail tree validate verify view watch
    """,
    )
)
"""Verbs that look at something."""
CHANGES = frozenset(
    re.findall(
        r"\w+",
        """
    abort accept add allow append apply approve archive assign attach book branch bulk buy call cancel charge checkout
    clean clear click close clone comment commit configure connect copy create delete deploy destroy disable
    disconnect download drag drop duplicate edit emit enable erase eval evaluate exec execute export fill force fork
    format grant import init insert install invite invoke join kill launch leave link lock make merge mkdir modify move
    mutate navigate order overwrite patch pause pay post press prune publish pull purge push put rebase refund
    register reject release reload remove rename replace reply reset restart restore resume revert revoke rm
    rotate run save schedule send set shutdown sign spawn start stash stop submit subscribe swap switch sync tag
    terminate toggle touch transfer trigger truncate type undo uninstall unlink unlock unpublish unset unsubscribe
    update upgrade upload upsert wipe write
    """,
    )
)
"""Verbs that change something."""
VERBS = (
    READS
    | CHANGES
    | frozenset(
        re.findall(
            r"\w+",
            """
    activate adjust aggregate alert allow alter amend analyse analyze annotate answer archive arrange ask assert audit
    backup ban batch begin bind block boot bring bump cache capture change chat check choose clip close collect
    collapse compile complete compose compress compute convert count crawl cut deactivate debug decline decode
    decrypt delegate demote deny deploy detach detect diagnose discard discover dismiss dispatch draft draw drive drain
    dump edit encode encrypt end enrich ensure enter escalate estimate exit expand expire explore express fail fetch
    filter fix flag flush fold forget forward freeze gather generate give go group guess halt hash hdel hget hide
    hold hset ignore incr index infer inform interrupt invalidate keep label lead lend lift limit link lint listen
    llen load locate loop lose lower lpop lpush lrange lrem manage map mark mask match mention mind mirror mock mount
    mute name notify obtain offer open optimize pack pad park parse pass pick pin ping place plan play point poll pop
    predict prepare present proceed process promote prompt propose protect provide provision psubscribe purge queue
    quit quote raise rank rate reach reactivate reassign rebuild receive recommend recover redeploy redirect redo
    reduce refactor refresh refuse reindex reject relate relay rem remember remind render rent reopen repair repeat
    report request require rescan resend reserve resize retire retry return reuse review rewind rewrite roll rollback
    rpop rpush sadd sample sanitize scale scrape scroll seek select sell serve share ship shift shut simulate sleep
    snap snooze sort spend split srem stage star stat steer step store stream stretch subtract suggest sum supply
    suspend sweep sync take talk tap teach tell test throttle throw tidy trace track trade train transcribe transform
    translate transmit trash trim try tune turn unapprove unarchive unassign unban unblock undelete unfold unfollow
    unhide unmark unmask unmount unmute unpack unpause unpin unread unregister unshare unstar untag use value vote
    wait wake walk warm warn wrap xack xadd xdel xgroup xrange xread zadd zrange zrem zip
    """,
        )
    )
)
"""All verbs: a name that begins with one means this verb, however similar another looks."""

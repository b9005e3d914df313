"""The values of the look: one set of sizes, a light and a dark palette."""

from dataclasses import replace

from gatewright_gui.qt.look import Levels, Pair, Palette, Strip, Syntax, Tokens, Verdicts

TOKENS = Tokens(
    space_1=4,
    space_2=8,
    space_3=12,
    space_4=16,
    title_text_size=18,
    heading_text_size=14,
    text_size=13,
    small_text_size=11,
    radius=4,
    small_radius=3,
    row_height=26,
    control_height=26,
    icon_size=16,
    small_icon_size=14,
    rail_width=76,
)

_TEXTS = ("title_text_size", "heading_text_size", "text_size", "small_text_size")


def tokens_for(factor: float) -> Tokens:
    """The sizes with all texts larger by a factor; rows and controls have room for them up to 1.3."""
    return replace(TOKENS, **{name: round(getattr(TOKENS, name) * factor) for name in _TEXTS})


LIGHT = Palette(
    background="#f2f4f7",
    surface="#ffffff",
    raised="#f9fafb",
    hover="#edf0f4",
    pressed="#dce1e8",
    border="#d3d8df",
    border_strong="#848c97",
    text="#1b2027",
    muted="#525b67",
    disabled="#858d98",
    accent=Pair("#1a56ad", "#dfeafa"),
    on_accent="#ffffff",
    selection="#d3e3f8",
    selection_inactive="#d9dfe7",
    focus="#1a56ad",
    neutral=Pair("#545c68", "#e8ebef"),
    verdict=Verdicts(
        allow=Pair("#17632f", "#dcf1e2"),
        ask=Pair("#744a00", "#fbeccb"),
        deny=Pair("#a01f19", "#fbe2df"),
    ),
    level=Levels(
        none=Pair("#a01f19", "#fbe2df"),
        read_only=Pair("#1a56ad", "#dfeafa"),
        partner=Pair("#6a5000", "#f6efc8"),
        human=Pair("#94400a", "#fbe6d6"),
        append=Pair("#0b5f66", "#d7eef0"),
        read_write=Pair("#17632f", "#dcf1e2"),
        admin=Pair("#7a2aa0", "#f1e2f8"),
    ),
    syntax=Syntax(
        key="#1a4f9c",
        string="#17632f",
        number="#8a3a0a",
        keyword="#7a2aa0",
        punctuation="#525b67",
        comment="#5a6370",
    ),
    diff_added=Pair("#17632f", "#e3f4e8"),
    diff_removed=Pair("#a01f19", "#fce9e7"),
    strip=Strip(ground="#14233f", text="#ffffff", muted="#b9c4d6", link="#94bdff", danger="#ff9d94"),
)

DARK = Palette(
    background="#212429",
    surface="#1a1c20",
    raised="#2a2e34",
    hover="#282c33",
    pressed="#363c45",
    border="#383d45",
    border_strong="#747d8a",
    text="#e2e6eb",
    muted="#a6aeb9",
    disabled="#737b87",
    accent=Pair("#85b6f7", "#203349"),
    on_accent="#10151c",
    selection="#253d5c",
    selection_inactive="#363c46",
    focus="#85b6f7",
    neutral=Pair("#a3abb6", "#2c3036"),
    verdict=Verdicts(
        allow=Pair("#7fd096", "#1c3524"),
        ask=Pair("#e8bb5c", "#3a2e12"),
        deny=Pair("#f79d94", "#432422"),
    ),
    level=Levels(
        none=Pair("#f79d94", "#432422"),
        read_only=Pair("#85b6f7", "#203349"),
        partner=Pair("#dccb62", "#36321a"),
        human=Pair("#f5a871", "#402a1a"),
        append=Pair("#63cbd3", "#16353a"),
        read_write=Pair("#7fd096", "#1c3524"),
        admin=Pair("#d6a2ef", "#37263f"),
    ),
    syntax=Syntax(
        key="#8dbcf8",
        string="#8fd3a2",
        number="#f0b083",
        keyword="#d6a2ef",
        punctuation="#a6aeb9",
        comment="#a0a9b4",
    ),
    diff_added=Pair("#7fd096", "#1b2f22"),
    diff_removed=Pair("#f79d94", "#3a2322"),
    strip=Strip(ground="#263449", text="#ffffff", muted="#b4becb", link="#94bdff", danger="#ffa79f"),
)

"""What texts from a model mean: paths, URLs, hosts. It resolves no name and knows no disk and no policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path
    from gatewright.arguments.url import UrlRefused, UrlTarget, parse_host, parse_url

__all__ = [
    "ModelPath",
    "PathRefused",
    "UrlRefused",
    "UrlTarget",
    "parse_host",
    "parse_model_path",
    "parse_url",
]

door(
    __name__,
    {
        "gatewright.arguments.path": ("ModelPath", "PathRefused", "parse_model_path"),
        "gatewright.arguments.url": ("UrlRefused", "UrlTarget", "parse_host", "parse_url"),
    },
)

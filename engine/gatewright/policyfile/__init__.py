"""The policy file: TOML read strictly with places, edited with the least change, stored whole. It enforces nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.policyfile.export import carries as carries
    from gatewright.policyfile.export import render_pattern as render_pattern
    from gatewright.policyfile.known import CatalogFacts as CatalogFacts
    from gatewright.policyfile.known import KnownTools as KnownTools
    from gatewright.policyfile.patch import patch_text as patch_text
    from gatewright.policyfile.place import Places as Places
    from gatewright.policyfile.reader import LoadedPolicy as LoadedPolicy
    from gatewright.policyfile.reader import parse_policy as parse_policy
    from gatewright.policyfile.reader import policy_schema as policy_schema
    from gatewright.policyfile.render import render_policy as render_policy
    from gatewright.policyfile.store import digest_of as digest_of
    from gatewright.policyfile.store import overwrite_policy_text as overwrite_policy_text
    from gatewright.policyfile.store import read_policy_text as read_policy_text
    from gatewright.policyfile.store import write_policy_text as write_policy_text

door(
    __name__,
    {
        "gatewright.policyfile.export": ("carries", "render_pattern"),
        "gatewright.policyfile.known": ("CatalogFacts", "KnownTools"),
        "gatewright.policyfile.patch": ("patch_text",),
        "gatewright.policyfile.place": ("Places",),
        "gatewright.policyfile.reader": ("LoadedPolicy", "parse_policy", "policy_schema"),
        "gatewright.policyfile.render": ("render_policy",),
        "gatewright.policyfile.store": ("digest_of", "overwrite_policy_text", "read_policy_text", "write_policy_text"),
    },
)

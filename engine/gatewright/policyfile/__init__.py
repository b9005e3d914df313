"""Reads the policy file with places, edits its text with the least change, and writes it in one step.

A pydantic model describes each table: keys, types, defaults, limits, words (`ShellTable` in `readworkspace.py`). From
its fields `policyfile/table.py` reads a table (with `base/row.py`), writes a value, and makes the JSON Schema. A rule
about names or about two keys is a function beside the model. The readers return the value as far as they can build it,
and every fault that they find: the app shows both.

A text is edited on the spans that `policyfile/scan.py` finds (`policyfile/editor.py`), since only that leaves
everything else untouched and stays linear in the length of the file; tomlkit writes what is new
(`policyfile/render.py`). `policyfile/splice.py` pairs the rows of two policies by identity, and by names and likeness
if one policy came from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.policyfile.names import CatalogFacts as CatalogFacts
    from gatewright.policyfile.names import KnownTools as KnownTools
    from gatewright.policyfile.names import Places as Places
    from gatewright.policyfile.patch import patch_text as patch_text
    from gatewright.policyfile.reader import LoadedPolicy as LoadedPolicy
    from gatewright.policyfile.reader import digest_of as digest_of
    from gatewright.policyfile.reader import overwrite_policy_text as overwrite_policy_text
    from gatewright.policyfile.reader import parse_policy as parse_policy
    from gatewright.policyfile.reader import policy_schema as policy_schema
    from gatewright.policyfile.reader import read_policy_text as read_policy_text
    from gatewright.policyfile.reader import write_policy_text as write_policy_text
    from gatewright.policyfile.render import carries as carries
    from gatewright.policyfile.render import render_pattern as render_pattern
    from gatewright.policyfile.render import render_policy as render_policy

door(
    __name__,
    {
        "gatewright.policyfile.render": ("carries", "render_pattern", "render_policy"),
        "gatewright.policyfile.names": ("CatalogFacts", "KnownTools", "Places"),
        "gatewright.policyfile.patch": ("patch_text",),
        "gatewright.policyfile.reader": (
            "LoadedPolicy",
            "digest_of",
            "overwrite_policy_text",
            "parse_policy",
            "policy_schema",
            "read_policy_text",
            "write_policy_text",
        ),
    },
)

"""Holds the policy as pure values: agents, sources, rules, levels, verdicts, the document and its edits.

A kind of rule or capability (`policy/rulekind.py`, `policy/capability.py`) says itself how it is read, checked, written
and named, also to the model. The reader of the file, its plain form, the least change of the text and the check of an
edit walk over the kinds and name none; where a kind needs the tools or a JSON Schema, `policyfile/readrule.py` asks it
by name.

An edit holds whole agents, sources or one field of the policy, before and after, so that its inverse needs no memory.
Every row has an `identity` (`policy/rule.py`) that no edit changes and that equality leaves out: an edit names the row
that was seen, not its place, and is refused once that row is gone. What was renamed, moved or changed is therefore
known, not guessed.

The word for a right (`OperationRight.word`: allow, by path, by block, ...) is made here once and shown by all.
`workspace/refusal.py` finds what mends a problem by its code and subject, never by its words. `policy/glob.py` reads
patterns of files; `git check-ignore` is the oracle of its tests, pathspec on RE2 asks them all at once
(`base/firstmatch.py`). pathspec's own reading of patterns errs on `[[:alpha:]]`, `[b-a]`, a lone backslash at the end,
`a[!b]c`, on `?` for a whole `é`, and its other engines take time without bound or are not installed.
"""

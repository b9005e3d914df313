"""Opens the program's own files in a state or key folder; nothing else opens them.

`PrivateFolder` (`record/folder.py`) follows no link and accepts only plain files. `Database` (`record/database.py`)
completes a new SQLite file before the file gets its name, and lends it to one thread at a time, for reading or for a
transaction. A seal binds each file to its state folder and to the keys of its user; a file with another seal is foreign
(`ForeignStore`), and whatever needs it is denied.

Data that nobody may forge has three things more: a key, a `Seal` on each row, and an `AnchorFile` in the key folder
that says which rows count. The rows of the audit log follow each other, so its anchor names the last one; rows of the
approvals (`SealedTable`) come and go, so their anchor lists the ids. A database that many gateways share
(`record/shared.py`) has roles and signatures instead. Locks come from `fork_safe_lock`: a fork takes them all, so that
its child finds them free.
"""

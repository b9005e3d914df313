"""Opens what lies in a state or key folder: the one way to files of the program's own.

`PrivateFolder` (`record/folder.py`) follows no link and takes plain files alone. `Database` (`record/database.py`)
makes an SQLite file whole before the file has its name, and gives it to one thread at a time, to read or for a
transaction. Each file bears a seal that binds it to its state folder and to the keys of its user; a file with another
seal is foreign (`ForeignStore`), and what needs it is denied.

What must not be forged has three things more: a key, a `Seal` on each row, and an `AnchorFile` in the key folder that
says which rows count. Rows of the audit log follow each other, so its anchor names the last one; rows of the approvals
(`SealedTable`) come and go, so theirs lists the ids. Locks come from `fork_safe_lock`: a fork takes them all, so that
its child finds them free.
"""

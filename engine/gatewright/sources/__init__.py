"""Serves files on disk as agents may use them: sources, levels, blocks of files, and what a confined process sees.

`sources/manager.py` knows the sources of a workspace; `sources/filesource.py` is one source of files. Every question to
the disk goes through `sources/ground.py`, which says where a name lies (a disposable copy has the names of its
original), or through the descriptor of a `BaseFolder`. A stream (`sources/stream.py`) reports changes; a source of type
`host` belongs to the program (`sources/known.py`).

`RoomPlanner` (`sources/roomplan.py`) plans the mounts of a confined process, its room. `sources/roomview.py` knows what
the process sees of a path by its name, skips folders in which everything looks alike, and lists other folders again
when they change. `sources/roomlayout.py` picks for each folder the mount that shows it right: an overlay with whiteouts
(`sources/roomcopy.py`), the folder itself with covers, or an empty one with parts mounted in it. `sources/roomwatch.py`
hides names that appear; it uses inotify itself, since watchfiles does not report when the kernel dropped events. All
events of a room come through one queue in order: once it delivers the event of a file that we made ourselves, all
earlier events were delivered too. A place given as `snapshot` is a private copy (`sources/roomcopy.py`);
`sources/writeback.py` judges what the process changed there when the room closes, and writes it back.
"""

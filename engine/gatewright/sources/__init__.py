"""Serves files on disk as agents may use them: sources, levels, blocks of files, and what a confined process sees.

`sources/manager.py` knows the sources of a workspace; `sources/filesource.py` is one of files. Whatever asks the disk
goes through `sources/ground.py`, which says where a name stands (a disposable copy bears the names of its original), or
through the descriptor of a `BaseFolder`. A stream (`sources/stream.py`) tells of changes; a source of type `host` is
the program's own (`sources/known.py`).

`RoomPlanner` (`sources/roomplan.py`) says what is mounted in the room of a confined process. `sources/roomview.py`
knows how the process sees a path by its name, and below which folders that is one answer, so that nobody looks there,
and lists the other folders again where they changed; `sources/roomlayout.py` picks for each folder the mount that shows
it right: an overlay with whiteouts (`sources/roomcopy.py`), the folder itself with covers, or an empty one with parts
mounted in it. `sources/roomwatch.py` hides what appears; it asks inotify itself, since watchfiles does not tell when
the kernel dropped events. Every event of a room comes through one queue in order: a file that is made in a folder of
ours and seen there proves that all before it was seen. A place given as `snapshot` is a private copy
(`sources/roomcopy.py`); `sources/writeback.py` judges what the process changed there when the room is closed, and
writes it back.
"""

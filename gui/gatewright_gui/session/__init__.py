"""Holds the open workspace as the app sees it: document, selection, verbs, undo, and what is derived.

A switch of workspaces has two steps. First nothing is open and `Document.closed` is emitted: the window ends all tasks,
menus and dialogs of the workspace (`TaskOwner.let_go`), the deriver answers nobody, every page empties its models. Only
then the next one is put in, and `Document.opened` lets the pages show it. Whoever keeps anything of a workspace
connects to `closed`.

Long Python work in a thread would hold up the window, so each window has one worker process (`session/worker.py`) with
the same workspace. It starts with the first question after the window was painted, gets the parts of the policy that
are new to it, and never writes, starts or connects anything. `Deriver.derive(question, ...)` (`session/derive.py`)
asks: a question is a function of a module that loads nothing of Qt; its result has to be picklable and small enough to
be read between two paintings. Questions wait in one queue; one whose task was cancelled, or that is of an older policy,
never begins; what takes minutes is a generator and lets others go first. A worker that dies is started again and asked
again, once. Two things stay in the window: the rights that the tree shows, since sending them costs more than working
them out, and the folders of the page Files (three threads of `session/files.py`). What waits instead of working goes to
threads: the policy file to the one of `Document.in_worker`, the calls of the console to a loop of its own
(`session/console.py`).

`session/unsaved.py` keeps the text of a policy with unsaved edits in a journal and offers what a killed process left;
`session/unsaved.py` and `session/draft.py` do so for what is typed over memory and over the policy's text. Each undo
command keeps the text that its edit was made on, so that what a step took out of the file comes back with its comments.
A reload or a merge begins a new stack.

`session/effects.py` says what agents can do by effect, `session/waiting.py` knows which calls wait,
`session/waiting.py` which answers stand, `session/audit.py` reads the log, `session/catalogs.py` joins policy, pins
and servers into a row for each catalog, `session/room_picture.py` reads the places of a confinement,
`session/memory.py` and `session/remembered.py` read and change what a workspace remembers.
"""

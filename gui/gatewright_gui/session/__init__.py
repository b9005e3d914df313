"""The open workspace as the app sees it: document, selection, verbs, undo, what is derived. It draws nothing."""

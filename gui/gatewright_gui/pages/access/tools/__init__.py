"""The main page: agents, the tree of boxes, why, and the preview beside it.

Nothing is loaded here, so that the worker process can have `right_lines` without Qt.
"""

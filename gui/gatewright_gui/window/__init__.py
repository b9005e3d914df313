"""The main window: rail, top bar, pages, status bar, and its actions as rows of data."""

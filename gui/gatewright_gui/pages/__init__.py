"""The pages of the window. Each shows the document and calls verbs; none decides anything."""

"""Files on disk as agents may use them: sources, their levels, their blocks."""

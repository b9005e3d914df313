"""The page Policy."""

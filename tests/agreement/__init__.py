"""Compares the schemas that models see with the calls that the gate permits, for real tools and generated calls."""

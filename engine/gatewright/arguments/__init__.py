"""What texts from a model mean: so far paths. It knows no disk and no policy."""

from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path

__all__ = ["ModelPath", "PathRefused", "parse_model_path"]

"""What the chosen agent's model sees, beside the tree of boxes."""

from gatewright_gui.pages.access.preview.preview_pane import PreviewPane

__all__ = ["PreviewPane"]

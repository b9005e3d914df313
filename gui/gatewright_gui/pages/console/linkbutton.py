"""A button that looks like a link: for what is beside the way. It does nothing by itself."""

from PySide6.QtWidgets import QPushButton


def link_button(text: str, name: str, tip: str, spoken: str = "") -> QPushButton:
    """`name`: of the object; `spoken`: its accessible name where the text alone says too little."""
    button = QPushButton(text)
    button.setProperty("kind", "link")
    button.setObjectName(name)
    button.setAccessibleName(spoken or text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    return button

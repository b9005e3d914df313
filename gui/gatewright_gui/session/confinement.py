"""What a process of its own may reach, as the app tells it: the server of a catalog, or (None) shell commands."""

from typing import Literal

from gatewright.workspace.api import Confine, ShellBackend, frozen
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document

Tone = Literal["allow", "ask", "deny", "muted"]
_ICONS: dict[Tone, str] = {"allow": "shield-check", "ask": "shield-x", "deny": "ban", "muted": "info"}


@frozen
class Standing:
    """Whether it is confined, in words. `can_unconfine`: a person may take that away, `can_confine`: bring it back."""

    tone: Tone
    words: str
    can_confine: bool = False
    can_unconfine: bool = False

    @property
    def icon(self) -> str:
        """The icon of its tone."""
        return _ICONS[self.tone]


def standing_of(document: Document, catalog_id: str | None) -> Standing:
    """How what a server or a shell command does by itself is held, as the policy is edited now."""
    policy = document.policy
    if catalog_id is None:
        return _of_shell(policy.shell.backend, policy.shell.confine)
    catalog = policy.catalog(catalog_id)
    if catalog is None or catalog.command is None:
        where = catalog.url if catalog is not None else None
        away = tr("It runs elsewhere: calls go to {url}. Nothing of it runs on this computer.", url=where)
        return Standing("muted", away if where else tr("Another program runs its tools: nothing is started for it."))
    if not catalog.is_confined:
        told = tr(
            "Not confined: it may read and change every file that you may, your home folder and keys too, and reach"
            " every host."
        )
        return Standing("ask", told, can_confine=True)
    if catalog.waits_for_places:
        told = tr("Held: nobody said yet which folders it gets. Until then no agent sees its tools.")
        return Standing("deny", told, can_unconfine=True)
    told = tr("Confined: it gets the places below and nothing else of your files, and reaches no other host.")
    return Standing("allow", told, can_unconfine=True)


def _of_shell(backend: ShellBackend, confine: Confine) -> Standing:
    is_free = confine is Confine.NONE
    if backend is ShellBackend.DISABLED:
        return Standing("muted", tr("Shell commands are not run."), can_confine=is_free, can_unconfine=not is_free)
    if is_free:
        told = tr(
            "Not confined: what a command starts may read and change every file that you may, your home folder and keys"
            " too, and reach every host."
        )
        return Standing("ask", told, can_confine=True)
    told = tr(
        "Confined: what a command starts gets what its agent is granted, and nothing else of your files or hosts."
    )
    return Standing("allow", told, can_unconfine=True)

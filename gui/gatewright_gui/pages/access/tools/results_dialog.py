"""The author of a tool's results: one's own, or anybody outside, with what that rests on and what follows from it."""

from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import AfterOutside, CatalogType, Policy, ToolFacts, Trust
from gatewright_gui.pages.access.tools.declare_dialog import DeclarationDialog
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import run_dialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.readings import BUILT_IN, COMPOSITION
from gatewright_gui.session.verbs import operations as verbs
from gatewright_gui.session.verbs.operations import lists_tool

SIZE = (560, 320)
AS_FOUND = "found"
CHOICES = {
    AS_FOUND: (mark("As found"), mark("As the kind of tool says")),
    Trust.OWN.value: (mark("Own"), mark("Nobody but you and those whom you trust can write what it answers")),
    Trust.OUTSIDE.value: (mark("From outside"), mark("Anybody may have written what it answers")),
}
ABOUT = mark(
    "Words that anybody may have written can hold instructions for the model. A result from outside marks the session, "
    "and from then on the rules after outside results ask or deny."
)


def is_outside_as_found(document: Document, facts: ToolFacts) -> bool:
    """Tell whether the tool is outside as long as the policy does not say otherwise."""
    found = document.workspace.gate.snapshot().facts
    return next((one.outside for one in found if (one.name, one.major) == (facts.name, facts.major)), facts.outside)


def basis_words(document: Document, facts: ToolFacts) -> str:
    """The trust in a tool's results, and what it rests on."""
    declared = verbs.trust_declaration(document.policy, facts.name, facts.major)
    if declared is Trust.OUTSIDE:
        return tr("results from outside: the policy says so")
    if declared is Trust.OWN:
        return tr("own results: the policy says so")
    return _discovery_words(document, facts)


def _discovery_words(document: Document, facts: ToolFacts) -> str:
    catalog = document.policy.catalog(facts.origin)
    if is_outside_as_found(document, facts):
        if facts.origin == BUILT_IN:
            return tr("results from outside: it reads what others write")
        return tr("results from outside: those who run {catalog} write them", catalog=facts.origin)
    if facts.origin == COMPOSITION:
        return tr("own results: its steps are looked at one by one")
    if catalog is not None and catalog.kind is CatalogType.HOST:
        return tr("own results: the program that uses the policy runs it")
    return tr("own results: it is built in")


def effect_words(policy: Policy, facts: ToolFacts, *, is_outside: bool, was_outside: bool) -> str:
    """The consequence of a trust for the agents that have the tool. ``was_outside``: as it is found."""
    if not is_outside:
        return tr("Its results mark no session, whoever wrote them.") if was_outside else ""
    having = [one for one in policy.agents.values() if lists_tool(one.tools, facts)]
    ruled = [one.agent_id for one in having if any(isinstance(r.rule_type, AfterOutside) for r in one.tool_rules)]
    if not ruled:
        return tr("No agent that may have it has a rule after outside results: nothing follows from it yet.")
    return tr("After a result of it the rules of {agents} ask or deny.", agents=", ".join(ruled))


class ResultsDialog(DeclarationDialog):
    """After it was accepted `chosen` holds the choice."""

    def __init__(self, parent: QWidget | None, document: Document, facts: ToolFacts) -> None:
        super().__init__(parent, "results", tr("Results of {tool}", tool=facts.name), document, facts)
        self._now = verbs.trust_declaration(document.policy, facts.name, facts.major)
        self.choice = named(Segmented(tr("Who writes its results")), "results.choice")
        for key, (text, tip) in CHOICES.items():
            self.choice.add_segment(key, tr(text), tooltip=tr(tip))
        self.found = named(Label(wraps=True), "results.found")
        self.effect = named(Label(wraps=True), "results.effect", kind="muted")
        self.lay_out(
            self.heading_row(),
            named(Label(tr(ABOUT), wraps=True), "results.about", kind="muted"),
            Label(tr("&Who writes its results"), buddy=self.choice),
            row_of(self.choice, stretch()),
            self.found,
            self.effect,
            stretch(),
            self.fault,
        )
        self.found.setText(tr("As found it has {what}.", what=_discovery_words(document, facts)))
        self.choice.current_changed.connect(self._show)
        self.choice.set_current(AS_FOUND if self._now is None else self._now.value)
        self.choice.setFocus()
        self._show()
        self.resize(*SIZE)

    @property
    def chosen(self) -> Trust | None:
        """The trust to be declared; None: as found."""
        current = self.choice.current or AS_FOUND
        return None if current == AS_FOUND else Trust(current)

    def refusal(self) -> str:
        """Why it cannot be written."""
        return verbs.trust_refusal(self._document, self._facts.name, self._facts.major, self.chosen)

    def _show(self, _key: object = None) -> None:
        was_outside = is_outside_as_found(self._document, self._facts)
        is_outside = was_outside if self.chosen is None else self.chosen is Trust.OUTSIDE
        policy = self._document.policy
        self.effect.setText(effect_words(policy, self._facts, is_outside=is_outside, was_outside=was_outside))
        self.allow(is_new=self.chosen != self._now)


async def ask_trust(context: PageContext, parent: QWidget, facts: ToolFacts) -> None:
    """Ask who writes the results of a tool, and write the answer into the policy."""
    dialog = ResultsDialog(parent.window(), context.document, facts)
    if await run_dialog(dialog):
        verbs.declare_trust(context.document, facts.name, facts.major, dialog.chosen)

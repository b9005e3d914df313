"""The condition of a policy rule: rows of argument, relation and value, or TOML for what they cannot say."""

from collections.abc import Mapping

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.button import IconButton, Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import LargeTextEdit
from gatewright_gui.session.argument import Argument
from gatewright_gui.session.condition import (
    RELATIONS,
    Condition,
    Term,
    When,
    condition_of,
    read_value,
    read_when,
    value_text,
    when_of,
    when_text,
)

ALWAYS = mark("Always, whatever the arguments are.")


class TermRow(QWidget):
    """One term; the relations that fit the argument are offered first."""

    changed = Signal()
    removed = Signal()

    def __init__(self, number: int, arguments: Mapping[str, Argument]) -> None:
        super().__init__()
        self._arguments = arguments
        self._names = ""
        name = f"policy.when.{number}"
        self.field = named(QComboBox(), f"{name}.field", spoken=tr("Argument"))
        self.field.setEditable(True)
        if (edit := self.field.lineEdit()) is not None:
            named(edit, spoken=tr("Argument"))
        self.field.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.field.setMinimumContentsLength(8)
        self.relation = named(QComboBox(), f"{name}.relation", spoken=tr("Relation"))
        self.relation.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.relation.setMinimumContentsLength(8)
        self.value = named(QLineEdit(), f"{name}.value", spoken=tr("Value"))
        self.absent = named(QCheckBox(tr("or not given")), f"{name}.absent")
        self.absent.setToolTip(tr("Whether the condition holds too for a call that leaves the argument out"))
        remove = named(IconButton("x", tr("Remove this condition")), f"{name}.remove")
        self.fault = named(Label(), f"{name}.fault", kind="error")
        self.fault.hide()
        line = row_of(
            stretch(self.field, 2), stretch(self.relation, 2), stretch(self.value, 3), self.absent, remove, space=2
        )
        column_of(line, self.fault, into=self)
        self.offer(arguments)
        self.field.editTextChanged.connect(self._field_changed)
        self.relation.activated.connect(self._relation_chosen)
        self.relation.currentIndexChanged.connect(self._tell)
        self.value.textChanged.connect(self._tell)
        self.absent.toggled.connect(self._tell)
        remove.clicked.connect(self.removed)
        self._field_changed()

    def offer(self, arguments: Mapping[str, Argument]) -> None:
        """The arguments that there are."""
        self._arguments = arguments
        names = "\n".join(arguments)
        if names != self._names:
            self._names, text = names, self.field.currentText()
            with QSignalBlocker(self.field):
                self.field.clear()
                self.field.addItems(list(arguments))
                self.field.setEditText(text)
        self._fit_relations()

    def set_term(self, term: Term) -> None:
        """Show a term."""
        with QSignalBlocker(self):
            self.field.setEditText(term.field)
            self._fit_relations(term.relation)
            self.relation.setCurrentIndex(self.relation.findData(term.relation))
            self.value.setText(value_text(term.value) if RELATIONS[term.relation].keyword else "")
            self.absent.setChecked(term.or_absent)
            self._show()

    @property
    def term(self) -> Term:
        """The term that the row says. Raises ValueError."""
        name, relation = self.field.currentText().strip(), self._relation
        if not name:
            raise ValueError(tr("say which argument"))
        has_value = bool(RELATIONS[relation].keyword)
        value = read_value(relation, self._arguments.get(name) or Argument(name), self.value.text())
        return Term(name, relation, value, has_value and self.absent.isChecked())

    @property
    def _relation(self) -> str:
        """The relation that is chosen, by its key in the table."""
        return str(self.relation.currentData() or "")

    def show_fault(self, text: str) -> None:
        """Say what is wrong, below the row."""
        self.fault.setText(text.replace("`", ""))
        self.fault.setVisible(bool(text))

    def _field_changed(self, _text: str = "") -> None:
        self._fit_relations()
        self._tell()

    def _fit_relations(self, kept: str = "") -> None:
        """Those of the argument's kind, and the one that is chosen."""
        known = self._arguments.get(self.field.currentText().strip())
        chosen = self._relation
        kept = kept or (chosen if known is None else "")
        words = [one.words for one in RELATIONS.values() if known is None or known.kind in one.kinds]
        words += [kept] if kept and kept not in words else []
        if words != [self.relation.itemData(at) for at in range(self.relation.count())]:
            with QSignalBlocker(self.relation):
                self.relation.clear()
                for one in words:
                    self.relation.addItem(tr(one), one)
                self.relation.setCurrentIndex(words.index(chosen) if chosen in words else 0)
            if chosen not in words:
                self._relation_chosen()
        self._show()

    def _relation_chosen(self, _index: int = 0) -> None:
        self.absent.setChecked(RELATIONS[self._relation].is_not)

    def _tell(self, _value: object = None) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        relation = RELATIONS[self._relation]
        known = self._arguments.get(self.field.currentText().strip())
        choices = known.choices[:4] if known is not None else ()
        hint = f" {tr('or')} ".join(choices) or tr(relation.hint)
        self.value.setPlaceholderText(hint)
        self.value.setVisible(bool(relation.keyword))
        self.absent.setVisible(bool(relation.keyword))
        self.field.setToolTip(tip_text(known.description if known is not None else ""))


class ConditionForm(QWidget):
    """The form of a condition: in rows what they can say, the rest as TOML, which can say anything."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._arguments: Mapping[str, Argument] = {}
        self._number = 0
        self.rows: list[TermRow] = []
        self.way = named(Segmented(tr("How to say it")), "policy.when.way")
        self.way.add_segment("form", tr("Form"), tooltip=tr("What most people want to say"))
        self.way.add_segment("toml", "TOML", tooltip=tr("Any condition, as it stands in the file"))
        self.join = named(QComboBox(), "policy.when.join", spoken=tr("How the conditions go together"))
        self.join.addItem(tr("all of these"), userData=False)
        self.join.addItem(tr("any of these"), userData=True)
        self.add_button = named(QPushButton(tr("Condition")), "policy.when.add", spoken=tr("Add condition"))
        tie_icon(self.add_button, "plus")
        self.always = named(Label(tr(ALWAYS)), "policy.when.always", kind="muted")
        self.code = named(LargeTextEdit(tr("Condition as TOML"), lines=4), "policy.when.toml")
        Highlighter(self.code.document()).set_language("toml")
        self.fault = named(Label(wraps=True), "policy.when.fault", kind="error")
        self.fault.hide()
        self._rows = QVBoxLayout()
        self._rows.setSpacing(4)
        top = row_of(self.way, self.join, self.always, stretch(), self.add_button, space=2)
        column_of(top, self._rows, self.code, self.fault, into=self, space=1)
        self.way.current_changed.connect(self._way_changed)
        self.join.currentIndexChanged.connect(self._tell)
        self.add_button.clicked.connect(lambda _checked=False: self.add())
        self.code.edited.connect(self._tell)
        self._show()

    def offer(self, arguments: Mapping[str, Argument]) -> None:
        """The arguments that there are."""
        self._arguments = arguments
        with QSignalBlocker(self):
            for row in self.rows:
                row.offer(arguments)

    def set_when(self, when: When) -> None:
        """Show a condition."""
        with QSignalBlocker(self):
            condition = condition_of(when)
            self._set_rows(condition or Condition())
            self.code.set_text(when_text(when))
            with QSignalBlocker(self.way):
                self.way.set_current("toml" if condition is None else "form")
            self._show()

    @property
    def when(self) -> When:
        """The condition that is said. Raises ValueError, after saying it where it belongs."""
        if self.way.current == "toml":
            return read_when(self.code.text)
        terms: list[Term] = []
        wrong = ""
        for row in self.rows:
            try:
                terms.append(row.term)
                row.show_fault("")
            except ValueError as error:
                wrong = str(error)
                row.show_fault(wrong)
        if wrong:
            raise ValueError("")
        return when_of(Condition(tuple(terms), self.join.currentData()))

    def show_faults(self, faults: Mapping[str, str]) -> None:
        """Say what is wrong: by the argument that it is about, or under "" where it is about the whole."""
        rest = dict(faults)
        if self.way.current == "form":
            for row in self.rows:
                said = rest.pop(row.field.currentText().strip(), "")
                if said:
                    row.show_fault(said)
        text = "; ".join(filter(None, rest.values())).replace("`", "")
        self.fault.setText(text)
        self.fault.setVisible(bool(text))

    def add(self, field: str = "") -> None:
        """One more row, with the keys in it, about an argument if it is named."""
        row = self._new_row()
        row.field.setEditText(field)
        self._show()
        (row.value if field else row.field).setFocus(Qt.FocusReason.OtherFocusReason)
        self.changed.emit()

    def _set_rows(self, condition: Condition) -> None:
        for row in self.rows:
            row.hide()
            row.deleteLater()
        self.rows.clear()
        for term in condition.terms:
            self._new_row().set_term(term)
        self.join.setCurrentIndex(int(condition.is_any))

    def _new_row(self) -> TermRow:
        self._number += 1
        row = TermRow(len(self.rows) + 1, self._arguments)
        row.changed.connect(self.changed)
        row.removed.connect(lambda: self._remove(row))
        self.rows.append(row)
        self._rows.addWidget(row)
        return row

    def _remove(self, row: TermRow) -> None:
        at = self.rows.index(row)
        self.rows.remove(row)
        row.hide()
        row.deleteLater()
        (self.rows[min(at, len(self.rows) - 1)].field if self.rows else self.add_button).setFocus()
        self._show()
        self.changed.emit()

    def _way_changed(self, key: object) -> None:
        """Take along what was said; TOML that the rows cannot say stays TOML."""
        try:
            if key == "toml":
                with QSignalBlocker(self.way):
                    self.way.set_current("form")
                    said = self.when
                    self.way.set_current("toml")
                self.code.set_text(when_text(said))
            else:
                condition = condition_of(read_when(self.code.text))
                if condition is None:
                    raise ValueError(tr("the form cannot say all of this condition"))
                self._set_rows(condition)
        except ValueError as error:
            with QSignalBlocker(self.way):
                self.way.set_current("toml" if key == "form" else "form")
            if str(error):
                self.show_faults({"": str(error)})
            self._show()
            return
        self._show()
        self.changed.emit()

    def _tell(self, _value: object = None) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        is_form = self.way.current == "form"
        self.code.setVisible(not is_form)
        self.add_button.setVisible(is_form)
        self.join.setVisible(is_form and len(self.rows) > 1)
        self.always.setVisible(is_form and not self.rows)
        for row in self.rows:
            row.setVisible(is_form)

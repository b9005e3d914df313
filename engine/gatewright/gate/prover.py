"""Making the proof of a decision, when somebody asks for it."""

from __future__ import annotations

import hmac

from gatewright.base.errors import JsonRefused
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.call import CallState
from gatewright.gate.decision import Decision
from gatewright.gate.inforce import ProofKeys
from gatewright.gate.proof import DecisionProof
from gatewright.gate.stages.parse import read_arguments


class Prover:
    """Makes the proof of a decision when it is first asked for; until then it only holds what the decision knew."""

    __slots__ = ("_decision_id", "_keys", "_made", "_snapshot", "state")

    def __init__(self, state: CallState, snapshot: Snapshot, keys: ProofKeys) -> None:
        self.state = state
        self._snapshot = snapshot
        self._keys = keys
        self._decision_id = ""
        self._made: tuple[Decision, DecisionProof] | None = None

    @property
    def decision_id(self) -> str:
        """The id of the decision, given when it is first asked for."""
        self._decision_id = self._decision_id or new_id("decision")
        return self._decision_id

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided."""
        return self._snapshot.policy_digest

    def proof(self, decision: Decision) -> DecisionProof:
        """The proof, the same one each time."""
        if self._made is not None and self._made[0] is decision:
            return self._made[1]
        state = self.state
        key_id, key = self._keys.current()
        proof = DecisionProof(
            self.decision_id,
            decision.verdict,
            decision.stage,
            decision.code,
            decision.reason.encode("utf-8", "replace").decode(),
            decision.rule.rule_id if decision.rule else None,
            state.grant,
            self.policy_digest,
            tool_digest(state),
            call_digest(state, key, tool_digest(state)),
            sent_digest(state, key),
            state.facts or state.session.facts(),
            state.now_s,
            state.wall_s,
            dict(state.rates),
            state.answer,
            key_id,
        ).sealed(key)
        self._made = (decision, proof)
        return proof


def tool_digest(state: CallState) -> str | None:
    """The digest of the tool that the call reached; None when it reached none."""
    return state.tool.tool.digest if state.tool is not None else None


def call_digest(state: CallState, key: bytes, tool: str | None) -> str:
    """Who calls what, the tool as it is with that digest, with which arguments: canonical as far as the stages came."""
    return _digest({**_who(state), "tool_digest": tool, "arguments": state.arguments}, key)


def sent_digest(state: CallState, key: bytes) -> str:
    """Who calls what with which arguments as they were sent; as text where they are no JSON object."""
    sent: JsonValue = type(state.raw).__name__
    try:
        sent = read_arguments(state.raw)
    except JsonRefused:
        content = state.raw.encode("utf-8", "surrogatepass") if isinstance(state.raw, str) else state.raw
        if isinstance(content, bytes):
            sent = hmac.new(key, b"raw\0" + content, "sha256").hexdigest()
    except Exception:  # noqa: BLE001 a mapping of the host's may raise anything; the stage was a denial then
        pass
    return _digest({**_who(state), "sent": sent}, key)


def _who(state: CallState) -> dict[str, JsonValue]:
    session_id = state.facts.session_id if state.facts is not None else state.session.session_id
    return {
        "agent": _valid(state.agent_id),
        "user": _valid(state.user_id) if state.user_id is not None else None,
        "session": _valid(session_id),
        "tool": _valid(state.tool_name),
    }


def _digest(bound: dict[str, JsonValue], key: bytes) -> str:
    return hmac.new(key, b"call\0" + canonical_json(bound), "sha256").hexdigest()


def _valid(text: str) -> JsonValue:
    """``text`` in a form that JSON can hold, still telling apart what differs."""
    return text if text.isascii() else ["utf-8", text.encode("utf-8", "surrogatepass").hex()]

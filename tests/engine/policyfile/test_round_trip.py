"""Random policies and random edits: what is written is what is read, and nothing else moves."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.policy.document import Policy
from gatewright.policyfile import patch_text, render_policy
from tests.engine.policyfile.catalog import edits, policies, policy_of
from tests.engine.policyfile.styled import styled

PROPERTY = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@PROPERTY
@given(st.data())
def test_a_patched_file_says_exactly_the_edited_policy_and_its_inverse_the_one_before(data: st.DataObject) -> None:
    before = data.draw(policies())
    after = data.draw(edits(before))
    text = render_policy(before)

    there = patch_text(text, before, after)
    back = patch_text(there, after, before)

    assert policy_of(there) == after
    assert policy_of(back) == before


@PROPERTY
@given(policies(), st.booleans())
def test_a_rendered_policy_reads_back_as_itself_and_gives_the_same_bytes(policy: Policy, crlf: bool) -> None:
    text = render_policy(policy).replace("\n", "\r\n" if crlf else "\n")
    read = policy_of(text)

    assert read == policy
    assert patch_text(text, read, policy) == text


@PROPERTY
@given(st.data(), st.booleans())
def test_a_patch_fits_every_style_of_writing(data: st.DataObject, crlf: bool) -> None:
    before = data.draw(policies())
    text = data.draw(styled(before)).replace("\n", "\r\n" if crlf else "\n")
    assert policy_of(text) == before
    after = data.draw(edits(before))

    patched = patch_text(text, before, after)

    assert policy_of(patched) == after
    assert not crlf or patched.count("\r\n") == patched.count("\n")

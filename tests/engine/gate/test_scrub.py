"""What is taken out of results as a secret, what is left alone, and what it costs."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.gate.scrub import MARKER, holds_marker, scrub_text, scrub_value
from gatewright.gate.secret import MAX_PLACES, secret_spans
from tests.support.checkout import ROOT

CORPORA = ROOT.parent / "shared" / "corpora"
MD5, SHA1 = "9e107d9d372bb6826bd81d3542a419d6", "3f786850e387550fdab836ed7e6dc881de23001b"
SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
RANDOM = "k3j4h5k2Qj3h4g8f7Rd6s5a4p9o8i7"

SECRETS = [
    ("password=hunter2", "hunter2"),
    ("PASSWORD=letmein", "letmein"),
    ("HOST=localhost\nPASSWORD=letmein", "letmein"),
    ("the last page\ntoken: abcd1234", "abcd1234"),
    (f"it is public\nkey: {MD5}", MD5),
    (f"the digest is sha256:\n{RANDOM}", RANDOM),
    ("--token ab12cd", "ab12cd"),
    ("export DB_PASSWORD=letmein", "letmein"),
    ('password: "correct-horse"', "correct-horse"),
    ("  password: letmein", "letmein"),
    ("the password is hunter2!", "hunter2"),
    ('the token is "abcdefgh"', "abcdefgh"),
    ("api_key = 'abc123def456'", "abc123def456"),
    ("https://x.example/a?token=abc12345&x=1", "abc12345"),
    ("https://x.example/a?password=letmein&x=1", "letmein"),
    ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
    ("say bearer aZbYcXdWeVfUgThSiRjQkPlO to it", "aZbYcXdWeVfU"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("Cookie: session=abc; other=def", "session=abc; other=def"),
    ("postgres://user:pa55@db:5432/x", "pa55"),
    ("Server=db;User=sa;Password=letmein;", "letmein"),
    ("AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;x", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"),
    (f"key:{RANDOM * 2}abcd\nnext line", RANDOM),
    ("see AKIAIOSFODNN7EXAMPLE there", "AKIAIOSFODNN7EXAMPLE"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "ghp_"),
    ("xoxb-123456789012-abcdefGHIJKL", "xoxb"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIza"),
    ("sk-proj-abc123DEF456ghi789jkl012", "sk-proj"),
    ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc y", "eyJhbGciOiJIUzI1NiJ9"),
    (f"id {RANDOM} end", RANDOM),
    ('{\\"client_secret\\": \\"s3cr3tvalue\\"', "s3cr3tvalue"),
    ("refresh_token: 1//0gabcDEF123", "1//0gabcDEF123"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----", "MIIEpAIB"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA cut", "b3BlbnNzaC1rZXk"),
    (f"token: {MD5}", MD5),
    (f"the token is {MD5}", MD5),
    (f"set the token to {MD5}.", MD5),
    (f"X-Api-Key: {MD5}", MD5),
    (f"x-api-key {SHA256}", SHA256),
    (f"curl --api-key {MD5} https://x.example", MD5),
    (f"deploy --key {SHA256}", SHA256),
    (f"key: {SHA256}", SHA256),
    (f'"key": "{SHA256}"', SHA256),
    (f"AES_KEY={SHA256}", SHA256),
    (f"DD_APP_KEY={SHA1}", SHA1),
    (f"SECRET_KEY_BASE={SHA256 * 2}", SHA256),
    (f"TWILIO_AUTH={MD5}", MD5),
    (f"https://x.example/a?key={MD5}&x=1", MD5),
    (f"the key is {MD5}", MD5),
    (f"see key-{MD5} there", MD5),
    (f"see sbp_{SHA1} there", SHA1),
    ("tool --password hunter22xyz -v", "hunter22xyz"),
    ("tool --db-passwd 'hunter-22'", "hunter-22"),
    ("gh --auth-token ab12cd34", "ab12cd34"),
    ("curl -u mo:hunter22xyz https://x.example", "hunter22xyz"),
    ("curl --user='mo:hunter22xyz' x", "hunter22xyz"),
    ("mysql -u root -phunter shop", "hunter"),
    ("/usr/bin/mysqldump -uroot -p'hunt er' shop > shop.sql", "hunt er"),
    ("mysqladmin --user=root -phunter22 ping", "hunter22"),
    ('cd /srv && mariadb -e "select 1; select 2" -phunter', "hunter"),
    ("sshpass -phunter ssh mo@x.example", "hunter"),
    ("sshpass -v -p 'hunter' ssh mo@x.example", "hunter"),
    ("aws --secret-key a1b2/c3", "a1b2/c3"),
    ("machine x login mo password hunter22xyz", "hunter22xyz"),
    (f"https://b.example/o?X-Amz-Date=1&X-Amz-Signature={SHA256}", SHA256),
    (f"https://b.example/o?X-Goog-Signature={SHA256}&x=1", SHA256),
    (f"see xkeysib-{SHA256}-abc there", SHA256),
]

HARMLESS = f"""The password is required
Password: required
password: string
def login(user: str, password: str) -> Token:
connect(user=user, password=password, token=token)
token = request.headers["X-Token"]
password = getpass.getpass()
password=os.environ["PW"]
secret: ${{{{ secrets.X }}}}
api_key: <your key>
bearer tokens are used
max_tokens: 4096
nextPageToken: abc123def456
test_denied_call_names_the_rule_line_and_column_2
/usr/lib/x86_64-linux-gnu/libfoo.so.6/abc
3f786850e387550fdab836ed7e6dc881de23001b
550e8400-e29b-41d4-a716-446655440000
note-550e8400-e29b-41d4-a716-446655440000
session-0123456789abcdef
objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904
https://example.com/how-to-build-a-rocket-in-10-easy-steps
sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
AbstractSingletonProxyFactoryBean2Implementation
01ARZ3NDEKTSV4RRFFQ69G5FAV
"token": "The authentication token"
"password": "must be at least 8 characters"
give --password to be asked for it
--token TOKEN
docker login --username mo --password-stdin
tool --secret-key ${{KEY}}
login mo password required
docker run -u 1000:1000 image
docker run --name mysql -p3306:3306 image
mysql -u root -p shop
mysql -P3307 -p"$DB_PW" shop
mysql -p$(cat key) shop; ls -plain
git push -u origin HEAD:main
============================================
password: Optional[str] = None
commit {SHA1}
sha256: {SHA256}
{SHA256}  setup.py
Content-MD5: {MD5}
etag: "{MD5}"
digest = sha256:{SHA256}
key id: {MD5}
keyid={SHA1}
token_id: {MD5}
token hash: {SHA256}
password hash {MD5}
public key: {SHA256}
primary_key = {MD5}
cache-key={MD5}
cache key: {SHA256}
Idempotency-Key: {MD5}
KeyError: {MD5}
key {SHA1} not found
0x{SHA256}
self.token = token
const token = await getToken();
authorization: required for every call
cookie: a small text file
token: 42
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/""".splitlines()

R24 = "k3Qj4h5Rd6s5a4Zp9o8Xi7Wv"
R512 = R24 * 21 + "Qx7Wv9Zk"
AT_THE_LIMIT = f"""
password: «a1b2»                      password: a1b                       pwd: «a1b2»        pwd=«a1b2»
password: «Letmein»                   password: letMein                   password: «LETMEIN»
password: let                         password: «abcd»
password: let_mein                    password: letmein # x               - password: «letmein»
x password: letmein                   call password=letmein               password= letmein
password=«letmein»                    set password=«letmein»              export password=«letmein»
x;password=«letmein»;y                a=1&password=«letmein»              password=letmein, x
password = get1234(x)                 password = get1234[x]               password = get1234{{x}}
password = «get1234» x                password: «ab12!c».                 password=«ab12!»
password: 123                         1234 password: «1234»               password: é~
password: «ab~c»                      the password is ab//c~              the password is «ab/c~»
api_key: abc12                        api_key: «abc123»
token: abc1234                        token: «abcd1234»                   token=letmein
credentials: abc1234                  credentials: «abcd1234»
token: "abc1234"                      token: "«abcd1234»"                 token: "letmeinplease"
password: "«fox»"                     password: "two words"               passphrase: "«two words»"
password: "«two ab12cd»"              password: "two ab12c"               password: "two 1234abc"
-----BEGIN PRIVATE KEY-----{"A" * 23}   «-----BEGIN PRIVATE KEY-----{"A" * 24}»
token: 1234-5678                      the password is éé~~                the password is $$$$
password: "****"                      password: "••••"                    password: "«q»"
bearer=letmein                        next_password: «a1b2»               password = os.environ1
password := letmein                   authorization: Bearer $TOKEN1       authorization: Basic «request.headers.x1»
next_token: abcd1234                  page-token: abcd1234                my_token: «abcd1234»
cookie = "a=b"                        Cookie: "«a=b»"                     Cookie: «a=b; c=d»
authorization: Token «QzXwVk»         authorization: Token QzXwV          authorization: Basic token
authorization: «QzXwVkQzXwVkQzXw»     authorization: QzXwVkQzXwVkQzX      authorization: "«a1»"
authorization: request.headers.x1     authorization: Bearer «request.headers.x1»
x bearer «QzXwVkQzXwVkQzXwVkQzXwVk»   x bearer QzXwVkQzXwVkQzXwVkQzXwV
x bearer «abcdefg1»                   x bearer abcdef1
the password is a1b                   the password is «a1b2».             the password is 12-ab
the password is letmein               the password is "«letmein»"         the password is "let mein"
token is «a1b2»                       token was «a1b2»                    the password is "required"
ab://user:«ab»@host                   ab://user:password@host
public key: {MD5}                     my key: «{MD5}»
password: \\"«abc»\\"                 password: "ab                       password: yourpass1
password: ${{pass1}}                  password: $PASS                     password: %PASS%
password: ***                         password: xxx1                      password: example1
password: «exam1»                     sk-this-is-a-name-of-something-long «sk-QzXwVkQzXwVkQzXwVkQzXw»
«xapp-0123456789»                     xapp-012345678
«{R24}»                               {R24[:-1]}
«{R512}»                              {R512}x
k3Qj4h5Rd6s5a4Zp9o8-abcdefa           «k3Qj4h5Rd6s5a4Zp9o8X-abcde»        «k3Qj4h5Rd6s5a4Zp9o8-zz-example-name»
sha256-{R24}                          sha384-{R24}                        sha512-{R24}
{R24}abcdefgh                         {R24}ABCDEFGH                       sha256:{R24}
data:text/plain;base64,{R24}          md5:«{R24}»                         QxZkQvWjXzKqVwJxQzXkWvQjZxPy
«QxZkQvWj+zKqVwJxQzXkWvQjZxPyFgHb»    «QxZkQvWjXzKqVwJxQzXkWvQjZxPyFg=»   12345678901234567890+abcdef
"""


@pytest.mark.parametrize("marked", [row for row in re.split(r"\n| {3,}", AT_THE_LIMIT) if row])
def test_secret_begins_exactly_where_the_rules_for_it_say(marked: str) -> None:
    wanted = re.sub("«[^»]*»", lambda _: MARKER, marked)

    assert scrub_text(marked.translate({ord("«"): None, ord("»"): None}))[0] == wanted


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text[:24] for text, _ in SECRETS])
def test_secret_is_taken_out_of_a_text_and_the_rest_stays(text: str, secret: str) -> None:
    scrubbed, count = scrub_text(text)

    assert count >= 1
    assert secret not in scrubbed
    assert MARKER in scrubbed
    assert scrub_text(scrubbed) == (scrubbed, 0)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert scrub_text(text) == (text, 0)


def test_keys_decide_inside_structures() -> None:
    value: Any = {
        "accessToken": "abc",
        "db_password": "q1",
        "nextPageToken": "abc12345xyz",
        "token": "abc12345",
        "password": {"type": "string"},
        "passwords": ["one", "two"],
        "secret": "two plain words",
        "pin": 1234,
        "fileId": RANDOM,
        "name": RANDOM,
        "env": [{"name": "DB_PASSWORD", "value": "swordfish"}],
    }
    scrubbed, count = scrub_value(value)

    assert count == 7
    assert scrubbed == {
        **value,
        "accessToken": MARKER,
        "db_password": MARKER,
        "token": MARKER,
        "passwords": [MARKER, MARKER],
        "name": MARKER,
        "env": [{"name": "DB_PASSWORD", "value": MARKER}],
    }


def test_hexadecimal_digits_are_a_secret_after_a_key_that_says_so_and_a_hash_or_id_elsewhere() -> None:
    secret = dict.fromkeys(("key", "appKey", "signing-key", "apikey", "DD_APP_KEY", "auth", "SECRET_KEY_BASE"), SHA256)
    harmless = dict.fromkeys(("sha256", "commit", "id", "key_id", "publicKey", "cache_key", "name", "monkeys"), SHA256)
    scrubbed, count = scrub_value({**secret, **harmless, "keys": [MD5], "Key": "note.md"})

    assert scrubbed == {**dict.fromkeys(secret, MARKER), **harmless, "keys": [MARKER], "Key": "note.md"}
    assert count == len(secret) + 1


def test_text_that_holds_json_stays_json() -> None:
    inner = json.dumps({"a": [{"password": "hunter", "quote": 'say "x"'}]}, indent=2)
    scrubbed, count = scrub_value({"text": inner, "twice": json.dumps(json.dumps({"secret": "abcd"}))})

    assert count == 2
    assert isinstance(scrubbed, dict)
    assert json.loads(str(scrubbed["text"])) == {"a": [{"password": MARKER, "quote": 'say "x"'}]}
    assert "abcd" not in str(scrubbed["twice"])


def test_keys_decide_in_a_text_of_json_in_a_text_four_deep() -> None:
    text = json.dumps({"accessToken": "abc"})
    for _ in range(3):
        text = json.dumps([text])

    assert scrub_text(text)[1] == scrub_value([text])[1] == 1
    assert scrub_text(json.dumps([text]))[1] == scrub_value([json.dumps([text])])[1] == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"password": «fox», "password": «fox»}',
        '{"password": «fox», "é": 1}',
        '{"password":«fox»,"b":1}',
        '{\n  "password": «fox»\n}',
        '{"a":1,"a":«2»}',
    ],
)
def test_text_of_json_keeps_its_shape(text: str) -> None:
    wanted = text.replace("«fox»", f'"{MARKER}"').replace("«2»", "2")

    assert scrub_text(text.replace("«fox»", '"fox"').replace("«2»", "2"))[0] == wanted


@pytest.mark.parametrize(("length", "count"), [(128, 1), (129, 0)])
def test_keys_of_more_than_128_characters_say_nothing_of_their_values(length: int, count: int) -> None:
    key = "_password".rjust(length, "x")

    assert scrub_value({key: "ab"})[1] == count
    assert scrub_value({"name": key, "value": "ab"})[1] == count


def test_number_of_four_digits_is_a_secret_under_a_key_that_says_so() -> None:
    values: list[Any] = [999, 1000, -1000, 999.5, True, None, "abc"]

    assert [scrub_value({"password": value})[1] for value in values] == [0, 1, 1, 0, 0, 0, 1]


def test_key_is_looked_through_like_any_text_and_names_the_value_beside_it() -> None:
    long = "x" * 200
    value: Any = {
        "password=hunter2": 1,
        f"{long} password=hunter2": 2,
        "a": {"key": "DB_PASSWORD", "value": "swordfish"},
    }
    scrubbed: Any = {f"password={MARKER}": 1, f"{long} password={MARKER}": 2}

    assert scrub_value(value) == ({**scrubbed, "a": {"key": "DB_PASSWORD", "value": MARKER}}, 3)


@pytest.mark.parametrize("width", [60, 64, 72, 76])
def test_full_lines_of_encoded_data_are_no_secret_and_other_widths_are(width: int) -> None:
    def block(size: int) -> str:
        line = (R24 * 4)[:size]
        return f"x\n{line}\n{line}\n{line[:30]}\n"

    assert scrub_text(block(width))[1] == 0
    assert scrub_text(block(width + 1))[1] > 0
    assert scrub_text(f"x\n {block(width)[2:]}")[1] > 0, "it does not begin its line"


def test_value_without_secrets_is_the_same_object() -> None:
    value: Any = {"a": ["b", {"c": 1}]}

    assert scrub_value(value)[0] is value


def test_certificate_is_no_secret() -> None:
    line = "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"
    text = f"-----BEGIN CERTIFICATE-----\n{line}\n{line}\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBg==\n-----END CERTIFICATE-----\n"

    assert scrub_text(text) == (text, 0)


def test_marker_is_found_anywhere_in_a_value() -> None:
    assert holds_marker({"a": ["x", {"b": f"key = {MARKER}\n"}]})
    assert not holds_marker({"a": ["[REDACT", 1, None]})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_scrubbing_never_raises_and_is_settled_after_once(value: Any) -> None:
    once, _ = scrub_value(value)

    assert json.loads(json.dumps(once)) == once
    assert scrub_value(once)[0] == once


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return [text for row in (*table, *table.values()) for text in strings(row)]
    return [text for row in cast("list[Any]", value) for text in strings(row)] if isinstance(value, list) else []


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not beside this checkout")
@pytest.mark.parametrize(
    "name", ["benign_paths", "benign_urls", "benign_shell_commands", "mcp_tools", "agentdojo_banking"]
)
def test_false_alarms_on_real_benign_texts_are_below_one_in_ten_thousand(name: str) -> None:
    texts = strings(json.loads((CORPORA / f"{name}.json").read_text("utf-8")))
    hits = [text for text in texts if secret_spans(text)]

    assert len(hits) * 10_000 < max(len(texts), 10_001), hits[:3]


def test_own_sources_hold_hardly_anything_that_looks_like_a_secret() -> None:
    texts = [path.read_text("utf-8") for path in Path(ROOT / "engine").rglob("*.py")]

    assert sum(len(secret_spans(text)) for text in texts) <= 1


@pytest.mark.parametrize(
    "unit",
    [
        "the quick brown fox jumps over src/main.py\n",
        "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhp\n",
        "password=hunter2 ",
        "password: ",
        'password="',
        "-----BEGIN PRIVATE KEY-----",
        "a",
        "\\\\\\\\",
    ],
)
def test_time_grows_no_faster_than_the_text(unit: str) -> None:
    def spent(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        scrub_text(text)
        return time.process_time() - began

    spent(1000)
    small, large = spent(500_000), spent(4_000_000)

    assert large < 40 * small + 1.0


def test_text_with_too_many_places_is_withheld_from_there_on() -> None:
    scrubbed, _ = scrub_text("password=hunter2 x=1\n" * (MAX_PLACES + 500) + "tail")

    assert scrubbed == f"password={MARKER} x=1\n" * MAX_PLACES + MARKER

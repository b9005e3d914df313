"""Operations of real OpenAPI documents, looked at by hand: what a server gets for given arguments.

The excerpts hold what GitHub, Blockfrost, Directus, Scalar's Galaxy, Train Travel and ReadMe's examples say of paths,
names and types, without a word of theirs. Where `OPENAPI_DOCUMENTS` names a folder with the packages of npm, the whole
documents are imported, too.
"""

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.openapi_document import read_document
from gatewright.adapters.openapi_tools import Imported, import_document
from gatewright.cli.main import main
from gatewright.gate import Status
from gatewright.gate.chain import RowKind
from gatewright.workspace import Workspace
from tests.engine.adapters.test_http_tool import parts_of
from tests.engine.builtins.webbench import Site, answer, started

EXCERPTS = json.loads((Path(__file__).parent / "openapi_excerpts.json").read_text("utf-8"))
WHOLE = {
    "github": "**/octokit-openapi*/**/api.github.com.json",
    "blockfrost": "**/blockfrost-openapi*/**/openapi.yaml",
    "directus": "**/directus-specs*/**/openapi.json",
    "galaxy": "**/scalar-galaxy*/**/dist/3.1.json",
    "trains": "**/readme-oas-examples*/**/3.1/json/train-travel.json",
    "styles": "**/readme-oas-examples*/**/3.0/json/parameters-style.json",
}
JSON = "application/json"
REPO = {"owner": "ada", "repo": "engine"}
RGB = {"primitive": "blue", "array": ["blue", "black"], "object": {"foo": "R", "bar": "G"}}
PNG = {"base64": "iVBORw==", "name": "p.png"}
STAKE = "stake1ux3g2c9dx2nhhehyrezyxpkstartcqmu9hk63qgfkccw5rqttygt7"

Row = tuple[str, str, dict[str, Any], str, object, dict[str, str]]
ROWS: list[Row] = [
    (
        "github",
        "GET /repos/{owner}/{repo}/issues",
        {**REPO, "state": "closed", "labels": "bug,ui & more", "per_page": 5},
        "/repos/ada/engine/issues?state=closed&labels=bug%2Cui%20%26%20more&per_page=5",
        None,
        {},
    ),
    (
        "github",
        "POST /repos/{owner}/{repo}/issues",
        {**REPO, "title": "Grün", "labels": ["bug", {"name": "ui"}], "milestone": None},
        "/repos/ada/engine/issues",
        {"title": "Grün", "labels": ["bug", {"name": "ui"}], "milestone": None},
        {},
    ),
    (
        "github",
        "PATCH /repos/{owner}/{repo}/issues/{issue_number}",
        {**REPO, "issue_number": 7, "state": "closed"},
        "/repos/ada/engine/issues/7",
        {"state": "closed"},
        {},
    ),
    (
        "github",
        "DELETE /repos/{owner}/{repo}/issues/{issue_number}/assignees",
        {**REPO, "issue_number": 7, "assignees": ["bob"]},
        "/repos/ada/engine/issues/7/assignees",
        {"assignees": ["bob"]},
        {},
    ),
    (
        "github",
        "GET /gists/public",
        {"since": "2026-01-01T00:00:00Z"},
        "/gists/public?since=2026-01-01T00%3A00%3A00Z",
        None,
        {},
    ),
    ("github", "GET /gists/{gist_id}", {"gist_id": "a1"}, "/gists/a1", None, {}),
    ("github", "GET /gists/{gist_id}/{sha}", {"gist_id": "a1", "sha": "f00"}, "/gists/a1/f00", None, {}),
    ("github", "GET /gists/{gist_id}/commits", {"gist_id": "a1", "page": 2}, "/gists/a1/commits?page=2", None, {}),
    ("github", "DELETE /gists/{gist_id}/star", {"gist_id": "a1"}, "/gists/a1/star", None, {}),
    (
        "github",
        "POST /gists",
        {"files": {"a.py": {"content": "x = 1"}}, "public": False},
        "/gists",
        {"files": {"a.py": {"content": "x = 1"}}, "public": False},
        {},
    ),
    (
        "github",
        "POST /markdown",
        {"text": "*hi*", "mode": "gfm"},
        "/markdown",
        {"text": "*hi*", "mode": "gfm"},
        {"accept": "text/html"},
    ),
    (
        "github",
        "POST /markdown/raw",
        {"body": "# Größe"},
        "/markdown/raw",
        "# Größe".encode(),
        {"content-type": "text/plain; charset=utf-8", "accept": "text/html"},
    ),
    (
        "github",
        "GET /repos/{owner}/{repo}/contents/{path}",
        {**REPO, "path": "docs/a b/c#1.md", "ref": "feature/x"},
        "/repos/ada/engine/contents/docs/a%20b/c%231.md?ref=feature%2Fx",
        None,
        {},
    ),
    (
        "github",
        "PUT /repos/{owner}/{repo}/contents/{path}",
        {**REPO, "path": "README.md", "message": "m", "content": "eA==", "committer": {"name": "A", "email": "a@b.c"}},
        "/repos/ada/engine/contents/README.md",
        {"message": "m", "content": "eA==", "committer": {"name": "A", "email": "a@b.c"}},
        {},
    ),
    (
        "github",
        "GET /repos/{owner}/{repo}/git/ref/{ref}",
        {**REPO, "ref": "heads/feature/x"},
        "/repos/ada/engine/git/ref/heads/feature/x",
        None,
        {},
    ),
    (
        "github",
        "PATCH /repos/{owner}/{repo}/git/refs/{ref}",
        {**REPO, "ref": "heads/main", "sha": "f00", "force": True},
        "/repos/ada/engine/git/refs/heads/main",
        {"sha": "f00", "force": True},
        {},
    ),
    (
        "github",
        "GET /repos/{owner}/{repo}/branches/{branch}",
        {**REPO, "branch": "feature/x"},
        "/repos/ada/engine/branches/feature/x",
        None,
        {},
    ),
    (
        "github",
        "GET /repos/{owner}/{repo}/branches/{branch}/protection",
        {**REPO, "branch": "main"},
        "/repos/ada/engine/branches/main/protection",
        None,
        {},
    ),
    (
        "github",
        "GET /repos/{owner}/{repo}/compare/{basehead}",
        {**REPO, "basehead": "main...bob:x"},
        "/repos/ada/engine/compare/main...bob%3Ax",
        None,
        {},
    ),
    ("github", "PUT /notifications", {}, "/notifications", None, {}),
    ("github", "PUT /notifications", {"read": True}, "/notifications", {"read": True}, {}),
    (
        "github",
        "PUT /repos/{owner}/{repo}/actions/secrets/{secret_name}",
        {**REPO, "secret_name": "KEY", "encrypted_value": "eA==", "key_id": "1"},
        "/repos/ada/engine/actions/secrets/KEY",
        {"encrypted_value": "eA==", "key_id": "1"},
        {},
    ),
    (
        "github",
        "POST /repos/{owner}/{repo}/dispatches",
        {**REPO, "event_type": "go", "client_payload": {"a": [1]}},
        "/repos/ada/engine/dispatches",
        {"event_type": "go", "client_payload": {"a": [1]}},
        {},
    ),
    ("github", "GET /user/packages", {"package_type": "npm"}, "/user/packages?package_type=npm", None, {}),
    ("github", "GET /meta", {}, "/meta", None, {"accept": f"{JSON}, text/*;q=0.9, */*;q=0.8"}),
    (
        "github",
        "PUT /orgs/{org}/teams/{team_slug}/memberships/{username}",
        {"org": "o", "team_slug": "t", "username": "u"},
        "/orgs/o/teams/t/memberships/u",
        None,
        {},
    ),
    ("github", "GET /search/issues", {"q": "repo:a/b is:open"}, "/search/issues?q=repo%3Aa%2Fb%20is%3Aopen", None, {}),
    (
        "blockfrost",
        "GET /accounts/{stake_address}/rewards",
        {"stake_address": STAKE, "count": 3, "order": "desc"},
        f"/accounts/{STAKE}/rewards?count=3&order=desc",
        None,
        {"project_id": "open-sesame"},
    ),
    ("blockfrost", "GET /assets/policy/{policy_id}", {"policy_id": "p1"}, "/assets/policy/p1", None, {}),
    ("blockfrost", "GET /assets/{asset}", {"asset": "b0d0"}, "/assets/b0d0", None, {}),
    (
        "blockfrost",
        "GET /assets/{asset}/history",
        {"asset": "b0d0", "page": 2},
        "/assets/b0d0/history?page=2",
        None,
        {},
    ),
    ("blockfrost", "GET /pools/retired", {}, "/pools/retired", None, {}),
    ("blockfrost", "GET /pools/{pool_id}", {"pool_id": "pool1x"}, "/pools/pool1x", None, {}),
    (
        "blockfrost",
        "POST /tx/submit",
        {"body": {"base64": "g6QA"}},
        "/tx/submit",
        b"\x83\xa4\x00",
        {"content-type": "application/cbor"},
    ),
    (
        "blockfrost",
        "POST /utils/txs/evaluate/utxos",
        {"cbor": "83a4", "version": 5},
        "/utils/txs/evaluate/utxos?version=5",
        {"cbor": "83a4"},
        {"content-type": JSON},
    ),
    (
        "blockfrost",
        "GET /nutlink/{address}/tickers/{ticker}",
        {"address": "addr1", "ticker": "ADA USD"},
        "/nutlink/addr1/tickers/ADA%20USD",
        None,
        {},
    ),
    (
        "blockfrost",
        "GET /metadata/txs/labels/{label}/cbor",
        {"label": "1990"},
        "/metadata/txs/labels/1990/cbor",
        None,
        {},
    ),
    (
        "directus",
        "GET /items/{collection}",
        {"collection": "posts", "fields": ["id", "author.name"], "sort": ["-date"], "limit": 2},
        "/items/posts?fields=id,author.name&sort=-date&limit=2",
        None,
        {"authorization": "open-sesame"},
    ),
    (
        "directus",
        "GET /items/{collection}",
        {"collection": "posts", "filter": {"a": {"_eq": "b c"}}},
        "/items/posts?filter=%7B%22a%22%3A%20%7B%22_eq%22%3A%20%22b%20c%22%7D%7D",
        None,
        {},
    ),
    (
        "directus",
        "POST /auth/login",
        {"email": "a@b.c", "password": "p"},
        "/auth/login",
        {"email": "a@b.c", "password": "p"},
        {},
    ),
    ("directus", "GET /assets/{id}", {"id": "8cbb", "download": True}, "/assets/8cbb?download=true", None, {}),
    (
        "directus",
        "GET /auth/oauth/{provider}",
        {"provider": "github", "redirect": "https://x.y/?a=b"},
        "/auth/oauth/github?redirect=https%3A%2F%2Fx.y%2F%3Fa%3Db",
        None,
        {},
    ),
    (
        "directus",
        "POST /auth/password/reset",
        {"token": "t", "password": "p"},
        "/auth/password/reset",
        {"token": "t", "password": "p"},
        {},
    ),
    (
        "directus",
        "POST /utils/import/{collection}",
        {"collection": "posts", "file": {"text": "[]", "name": "p.json"}},
        "/utils/import/posts",
        [("file", "p.json", "application/octet-stream", b"[]")],
        {},
    ),
    (
        "galaxy",
        "GET /planets",
        {"limit": 10, "offset": 0},
        "/planets?limit=10&offset=0",
        None,
        {"authorization": "open-sesame"},
    ),
    (
        "galaxy",
        "PUT /planets/{planetId}",
        {"planetId": 4, "name": "Mars", "description": None, "habitabilityIndex": 0.68},
        "/planets/4",
        {"name": "Mars", "description": None, "habitabilityIndex": 0.68},
        {},
    ),
    ("galaxy", "DELETE /planets/{planetId}", {"planetId": 4}, "/planets/4", None, {}),
    (
        "galaxy",
        "POST /planets/{planetId}/image",
        {"planetId": 4, "image": PNG},
        "/planets/4/image",
        [("image", "p.png", "application/octet-stream", b"\x89PNG")],
        {},
    ),
    (
        "galaxy",
        "POST /auth/token",
        {"email": "a@b.c", "password": "p"},
        "/auth/token",
        {"email": "a@b.c", "password": "p"},
        {},
    ),
    (
        "trains",
        "GET /trips",
        {"origin": "a", "destination": "b", "date": "2026-01-01T08:00:00Z", "dogs": True},
        "/trips?origin=a&destination=b&date=2026-01-01T08%3A00%3A00Z&dogs=true",
        None,
        {},
    ),
    (
        "trains",
        "POST /bookings",
        {"passenger_name": "Ada", "has_dog": False},
        "/bookings",
        {"passenger_name": "Ada", "has_dog": False},
        {},
    ),
    ("trains", "DELETE /bookings/{bookingId}", {"bookingId": "1725"}, "/bookings/1725", None, {}),
    (
        "styles",
        "GET /cookies",
        RGB,
        "/cookies",
        None,
        {"cookie": "primitive=blue; array=blue; array=black; foo=R; bar=G"},
    ),
    (
        "styles",
        "GET /anything/headers",
        RGB,
        "/anything/headers",
        None,
        {"primitive": "blue", "array": "blue,black", "object": "foo,R,bar,G"},
    ),
    (
        "styles",
        "POST /anything/headers/simple",
        RGB,
        "/anything/headers/simple",
        None,
        {"array": "blue,black", "object": "foo=R,bar=G"},
    ),
    (
        "styles",
        "GET /anything/path/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/blue/blue,black/foo,R,bar,G",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/path/matrix/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/matrix/;primitive=blue/;array=blue,black/;object=foo,R,bar,G",
        None,
        {},
    ),
    (
        "styles",
        "POST /anything/path/matrix/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/matrix/;primitive=blue/;array=blue;array=black/;foo=R;bar=G",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/path/label/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/label/.blue/.blue,black/.foo,R,bar,G",
        None,
        {},
    ),
    (
        "styles",
        "POST /anything/path/label/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/label/.blue/.blue.black/.foo=R.bar=G",
        None,
        {},
    ),
    (
        "styles",
        "POST /anything/path/simple/{primitive}/{array}/{object}",
        RGB,
        "/anything/path/simple/blue/blue,black/foo=R,bar=G",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/query",
        RGB,
        "/anything/query?primitive=blue&array=blue&array=black&foo=R&bar=G",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/query/form",
        RGB,
        "/anything/query/form?primitive=blue&array=blue,black&object=foo,R,bar,G",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/query/spaceDelimited",
        {"array": ["a", "b"], "object": {"foo": "R"}},
        "/anything/query/spaceDelimited?array=a%20b&object=foo%20R",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/query/pipeDelimited",
        {"array": ["a", "b"]},
        "/anything/query/pipeDelimited?array=a%7Cb",
        None,
        {},
    ),
    (
        "styles",
        "GET /anything/query/deepObject",
        {"object": {"foo": "R", "bar": "G"}},
        "/anything/query/deepObject?object%5Bfoo%5D=R&object%5Bbar%5D=G",
        None,
        {},
    ),
    (
        "styles",
        "POST /anything/form-data",
        RGB,
        "/anything/form-data",
        [
            ("primitive", None, None, b"blue"),
            ("array", None, None, b"blue"),
            ("array", None, None, b"black"),
            ("object", None, JSON, b'{"foo": "R", "bar": "G"}'),
        ],
        {},
    ),
    (
        "styles",
        "POST /anything/form-data/form",
        RGB,
        "/anything/form-data/form",
        [
            ("primitive", None, None, b"blue"),
            ("array", None, None, b"blue,black"),
            ("object", None, None, b"foo,R,bar,G"),
        ],
        {},
    ),
]
"""Of which document, the operation, arguments, what is requested, the body, and some of the headers."""


@asynccontextmanager
async def opened(folder: Path, content: bytes, more: str = "") -> AsyncGenerator[tuple[Workspace, Site, Imported]]:
    """A workspace whose agent lists all tools of a document, whose server is on loopback and answers all with `ok`."""
    server, site = await started()
    folder.mkdir(parents=True)
    (folder / "api").write_bytes(content)
    found = import_document(read_document(content))
    (folder / "policy.toml").write_text("gatewright = 1\n\n[agents.a]\ntools = []\n", "utf-8")
    words = ["catalog", "import", str(folder), "--openapi", str(folder / "api"), "--id", "api", "--prefix", "api"]
    more_words = ["--url", f"http://127.0.0.1:{site.port}", "--trust", "--accept"]
    assert await asyncio.to_thread(main, [*words, *more_words]) == 0
    names = json.dumps([f"api.{tool['name']}" for tool in found.tools])
    net = '{ NetRead = { allowlist = ["127.0.0.1"] } }, { NetWrite = { allowlist = ["127.0.0.1"] } }'
    text = (folder / "policy.toml").read_text("utf-8").replace("tools = []", f"tools = {names}\ncapabilities = [{net}]")
    text += '\n[agents.a.approvals]\nprivileged = "allow"\n\n[workspace]\nweb = { allow_private = true }\n'
    (folder / "policy.toml").write_text(f"{text}{more}", "utf-8")
    try:
        with Workspace.open(folder, keys=folder.parent / "keys") as workspace:
            assert {problem.code for problem in workspace.problems} <= {"unused-grant"}
            yield workspace, site, found
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    for name in ("API_PROJECT_ID", "API_AUTHORIZATION"):
        monkeypatch.setenv(name, "open-sesame")


def contents(name: str) -> list[bytes]:
    """The excerpt of a document, and the document itself where it is here."""
    place = os.environ.get("OPENAPI_DOCUMENTS", "")
    whole = sorted(Path(place).glob(WHOLE[name])) if place else []
    return [json.dumps(EXCERPTS[name]).encode(), *(path.read_bytes() for path in whole[:1])]


def places(found: Imported) -> dict[str, tuple[str, str]]:
    """The tool and its operation for each method and path."""
    rows = (
        (f"api.{tool['name']}", name, one) for tool in found.tools for name, one in tool["run"]["operations"].items()
    )
    return {f"{one['method']} {re.sub(r'{[^}]*}', '{}', one['path'])}": (tool, name) for tool, name, one in rows}


def test_table_is_of_fifty_operations_and_more() -> None:
    assert len({(name, operation) for name, operation, *_ in ROWS}) >= 50
    assert {name for name, *_ in ROWS} == EXCERPTS.keys() == WHOLE.keys()


@pytest.mark.parametrize("name", sorted(EXCERPTS))
async def test_server_gets_what_the_document_says(tmp_path: Path, name: str) -> None:
    for index, content in enumerate(contents(name)):
        async with opened(tmp_path / str(index), content) as (workspace, site, found):
            known = places(found)
            for _, operation, arguments, target, body, headers in (row for row in ROWS if row[0] == name):
                tool, chosen = known[re.sub(r"{[^}]*}", "{}", operation)]
                site.pages[target.partition("?")[0]] = answer("ok")
                outcome = await workspace.call("a", tool, {"operation": chosen, **arguments})
                assert outcome.status is Status.ALLOWED, (operation, outcome.output, outcome.detail)
                line, sent = site.requests[-1].partition("\r\n")[0], site.headers()
                assert line == f"{operation.partition(' ')[0]} {target} HTTP/1.1"
                assert {key: sent[key] for key in headers} == headers, operation
                if isinstance(body, dict):
                    assert (sent["content-type"], json.loads(site.bodies[-1])) == (JSON, body)
                elif isinstance(body, list):
                    assert parts_of(sent["content-type"], site.bodies[-1]) == body
                else:
                    assert site.bodies[-1] == (body or b"")
                    assert ("content-type" in sent) == (body is not None)


async def test_value_of_the_path_leads_to_no_other_operation(tmp_path: Path) -> None:
    for index, content in enumerate(contents("github")):
        async with opened(tmp_path / str(index), content) as (workspace, site, found):
            known = places(found)
            for operation, arguments in (
                ("GET /gists/{}", {"gist_id": "public"}),
                ("GET /gists/{}", {"gist_id": "a1/commits"}),
                ("GET /gists/{}/{}", {"gist_id": "a1", "sha": "commits"}),
                ("GET /repos/{}/{}/branches/{}", {**REPO, "branch": "main/protection"}),
                ("GET /repos/{}/{}/branches/{}", {**REPO, "branch": "../../../user"}),
                ("GET /repos/{}/{}/contents/{}", {**REPO, "path": "a/../../../../../user"}),
                ("GET /repos/{}/{}/contents/{}", {**REPO, "path": ""}),
            ):
                tool, chosen = known[operation]
                outcome = await workspace.call("a", tool, {"operation": chosen, **arguments})
                assert (outcome.status, outcome.code) == (Status.DENIED, "arguments-mismatch"), (operation, arguments)
            assert site.requests == []


@pytest.mark.parametrize(
    ("name", "operations", "faults"),
    [
        ("github", 1_222, ["~1repos~1{owner}~1{repo}~1releases~1{release_id}~1assets/post/servers"]),
        ("blockfrost", 123, ["~1ipfs"] * 6),
        ("directus", 136, []),
        ("galaxy", 10, []),
        ("trains", 6, ["/components/schemas/BookingPayment/properties/source"]),
        ("styles", 23, ["#formNonExploded", "#formExploded"]),
    ],
)
def test_whole_document_is_imported_and_its_faults_are_named(name: str, operations: int, faults: list[str]) -> None:
    for content in contents(name)[1:]:
        found = import_document(read_document(content))
        assert found.operations == operations
        assert [part in fault.pointer for part, fault in zip(faults, found.faults, strict=True)] == [True] * len(faults)


def filled(schema: dict[str, Any]) -> Any:
    """A value that fits a schema of an argument."""
    if "enum" in schema:
        return schema["enum"][0]
    if "base64" in schema.get("properties", {}):
        return {"text": "x"}
    plain: dict[str, Any] = {"integer": 7, "number": 1.5, "boolean": True, "array": [], "null": None}
    kind = str((schema.get("type") or ["string"])[0] if isinstance(schema.get("type"), list) else schema.get("type"))
    if kind != "object":
        return plain.get(kind, "x-y")
    needed = schema.get("required", ())
    return {name: filled(one) for name, one in schema.get("properties", {}).items() if name in needed}


@pytest.mark.parametrize("name", ["github", "blockfrost", "galaxy"])
async def test_of_a_random_set_of_operations_no_other_passes_is_shown_or_sent(tmp_path: Path, name: str) -> None:
    """Twenty sets for each tool, all tools at once: what is shown is what passes is what the server gets."""
    content = contents(name)[0]
    async with opened(tmp_path / "ws", content) as (workspace, site, found):
        policy = workspace.folder / "policy.toml"
        before, calls = policy.read_text("utf-8"), list[tuple[str, str]]()
        for seed in range(20):
            chance, allowed, rules = random.Random(f"{name} {seed}"), set[tuple[str, str]](), ""
            for tool in found.tools:
                names = sorted(tool["run"]["operations"])
                chosen = chance.sample(names, chance.randint(1, len(names)))
                allowed |= {(f"api.{tool['name']}", one) for one in chosen}
                kind = f"{{ AllowedOperations = {json.dumps(chosen)} }}"
                rules += f'\n[[agents.a.tool_rules]]\ntool_name = "api.{tool["name"]}"\nrule_type = {kind}\n'
            policy.write_text(before + rules, "utf-8")
            workspace.reload()
            shown = set[tuple[str, str]]()
            for listed in workspace.view("a").tools("mcp"):
                schema: Any = listed["inputSchema"]
                for branch in schema.get("oneOf", [schema]):
                    what = branch["properties"]["operation"]
                    shown |= {(str(listed["name"]), one) for one in what.get("enum", [what.get("const")])}
            assert shown == allowed
            passed, sent = set[tuple[str, str]](), 0
            for tool in found.tools:
                for branch in tool["inputSchema"]["oneOf"]:
                    given: dict[str, Any] = {
                        key: filled(branch["properties"][key]) for key in branch["required"] if key != "operation"
                    }
                    given |= {"operation": branch["properties"]["operation"]["const"]}
                    count = len(site.requests)
                    outcome = await workspace.call("a", f"api.{tool['name']}", given)
                    came = len(site.requests) - count
                    assert came == (outcome.status is not Status.DENIED), (given, outcome.code)
                    sent += came
                    if outcome.status is not Status.DENIED:
                        passed.add((f"api.{tool['name']}", given["operation"]))
                        calls.append((f"api.{tool['name']}", given["operation"]))
            assert (passed, sent) == (allowed, len(allowed))
        ran = {RowKind.TOOL_COMPLETED, RowKind.TOOL_FAILED}
        assert [(row.tool, row.operation) for row in workspace.audit.rows() if row.kind in ran] == calls

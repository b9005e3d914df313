"""Searching through the whole gate: engines that answer as the real ones do are asked one after the other."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest

from gatewright.gate import Status
from gatewright.policy.document import SearchEngine, SearchProvider, Web
from tests.engine.builtins.webbench import WHOLE, WebBench, answer, bench_of, redirect

DUCK = SearchProvider(SearchEngine.DUCKDUCKGO, "http://duck.example.org/html/")
SEARX = SearchProvider(SearchEngine.SEARXNG, "http://searx.lan/base/")
GOOGLE = SearchProvider(SearchEngine.GOOGLE, "http://google.example.org/customsearch/v1", "G_KEY", "G_CX")
KEYS = {"G_KEY": "very-secret-key", "G_CX": "engine-1"}
JSON = "application/json"
HTML = "text/html"


def duck_result(title: str, url: str, snippet: str, kind: str = "") -> str:
    link = (
        f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=0123"
        if not kind
        else "https://duckduckgo.com/y.js?ad=1"
    )
    return (
        f'<div class="result results_links web-result {kind}"><h2 class="result__title"><a rel="nofollow" '
        f'class="result__a" href="{link}">{title}</a></h2><a class="result__url" href="{link}">{url[8:]}</a>'
        f'<a class="result__snippet" href="{link}">{snippet}</a></div>'
    )


def duck_page(*results: str) -> bytes:
    return answer(f"<!DOCTYPE html><html><body><div id=links>{''.join(results)}</div></body></html>", content_type=HTML)


TEA = duck_page(
    duck_result("Buy &amp; buy", "https://ads.example.net/", "ad", "result--ad"),
    duck_result("Tea &amp; <b>leaf</b>", "https://tea.example.org/a?b=1&c=2", "How to <b>brew</b>\n tea"),
    duck_result("Second", "https://second.example.org/", "x" * 3_000),
    duck_result("Script", "javascript:alert(1)", "no address"),
    duck_result("Third", "https://third.example.org/", ""),
)
SEARX_ANSWER = {
    "query": "tea",
    "number_of_results": 2,
    "results": [
        {"url": "https://one.example.org/", "title": "One", "content": "first", "engine": "bing", "score": 1.0},
        {"url": "https://two.example.org/", "title": "Two", "content": None},
        "no row",
    ],
    "unresponsive_engines": [],
}
GOOGLE_ANSWER = {
    "kind": "customsearch#search",
    "searchInformation": {"totalResults": "1"},
    "items": [{"title": "G", "link": "https://g.example.org/", "displayLink": "g.example.org", "snippet": "from G"}],
}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[WebBench]:
    async with bench_of(tmp_path, web=Web(search=(DUCK, SEARX, GOOGLE)), variables=KEYS) as made:
        made.names.known["searx.lan"] = [("192.168.1.20",)]
        yield made


def asked(bench: WebBench, index: int = -1) -> tuple[str, dict[str, list[str]]]:
    path, _, query = bench.site.requests[index].split(" ", 2)[1].partition("?")
    return f"{bench.site.headers(index)['host']}{path}", parse_qs(query)


async def test_duckduckgo_gives_results_without_advertisements_and_with_the_real_addresses(bench: WebBench) -> None:
    bench.site.pages["/html/"] = TEA
    data = await bench.data("web_search", query="grüner tee & mehr", freshness="week")
    assert asked(bench) == ("duck.example.org/html/", {"q": ["grüner tee & mehr"], "df": ["w"]})
    assert data["engine"] == "duckduckgo"
    first, second, third = data["results"]
    assert first == {
        "index": 1,
        "title": "Tea & leaf",
        "url": "https://tea.example.org/a?b=1&c=2",
        "display_url": "tea.example.org",
        "snippet": "How to brew tea",
    }
    assert (second["snippet"], third["index"], third["url"]) == ("x" * 2_000, 3, "https://third.example.org/")
    assert len((await bench.data("web_search", query="tea", count=1))["results"]) == 1
    bench.site.pages["/html/"] = duck_page('<div class="no-results">No results</div>')
    assert (await bench.data("web_search", query="tea")) == {"engine": "duckduckgo", "results": []}


async def test_engine_that_fails_is_named_and_the_next_one_is_asked(bench: WebBench) -> None:
    bench.site.pages["/html/"] = answer("<html><div class=anomaly-modal>", content_type=HTML, status=202)
    bench.site.pages["/base/search"] = answer(json.dumps(SEARX_ANSWER), content_type=JSON)
    data = await bench.data("web_search", query="tea", count=7, freshness="month")
    assert asked(bench) == ("searx.lan/base/search", {"q": ["tea"], "format": ["json"], "time_range": ["month"]})
    assert (data["engine"], [row["url"] for row in data["results"]]) == (
        "searxng",
        ["https://one.example.org/", "https://two.example.org/"],
    )
    assert data["failed"] == [{"engine": "duckduckgo", "why": "it answered with status 202"}]
    bench.site.pages["/html/"] = duck_page("<form>are you human?</form>")
    bench.site.pages["/base/search"] = answer("Forbidden", status=403)
    bench.site.pages["/customsearch/v1"] = answer(json.dumps(GOOGLE_ANSWER), content_type=JSON)
    data = await bench.data("web_search", query="tea", count=7, freshness="day")
    where, sent = asked(bench)
    assert where == "google.example.org/customsearch/v1"
    assert sent == {"key": ["very-secret-key"], "cx": ["engine-1"], "q": ["tea"], "num": ["7"], "dateRestrict": ["d1"]}
    assert data["results"][0]["snippet"] == "from G"
    assert [row["engine"] for row in data["failed"]] == ["duckduckgo", "searxng"]


@pytest.mark.parametrize(
    "broken",
    [
        answer("{", content_type=JSON),
        answer("[]", content_type=JSON),
        answer('{"results": {}, "items": {}}', content_type=JSON),
        answer("[" * 100_000, content_type=JSON),
        answer("", status=500),
        redirect("http://searx.lan/base/"),
        b"",
    ],
)
async def test_where_every_engine_fails_the_call_does_and_tells_no_key(bench: WebBench, broken: bytes) -> None:
    bench.site.pages = dict.fromkeys(("/html/", "/base/search", "/customsearch/v1"), broken)
    outcome = await bench.call("web_search", query="tea")
    assert (outcome.status, outcome.code) == (Status.FAILED, "search-failed")
    for engine in SearchEngine:
        assert f"{engine}: " in (outcome.output or "")
    assert "very-secret-key" not in (outcome.output or "") + outcome.detail
    assert len(bench.site.requests) == 3


async def test_key_that_is_not_set_is_a_failure_of_its_engine(tmp_path: Path) -> None:
    async with bench_of(tmp_path, web=Web(search=(GOOGLE,))) as bench:
        outcome = await bench.call("web_search", query="tea")
        assert "google: its key is not set up" in (outcome.output or "")
        assert bench.names.asked == []


async def test_grant_has_to_cover_every_engine(tmp_path: Path) -> None:
    limited = 'capabilities = [{ NetRead = { allowlist = ["duck.example.org"] } }]\n'
    for engines, code in (((DUCK,), None), ((DUCK, SEARX), "host-not-granted")):
        async with bench_of(tmp_path / str(len(engines)), agent=limited, web=Web(search=engines)) as bench:
            bench.site.pages["/html/"] = TEA
            outcome = await bench.call("web_search", query="tea")
            assert (outcome.status is Status.ALLOWED) is (code is None)
            assert code is None or outcome.code == code


async def test_engine_at_its_usual_place_is_never_a_private_address(tmp_path: Path) -> None:
    async with bench_of(tmp_path, agent=WHOLE) as bench:
        bench.names.known["html.duckduckgo.com"] = [("127.0.0.1",)]
        outcome = await bench.call("web_search", query="tea")
        assert (outcome.code, bench.names.dialled) == ("search-failed", [])


@pytest.mark.parametrize("wrong", [{"query": ""}, {"query": "x", "count": 11}, {"query": "x", "freshness": "hour"}])
async def test_question_out_of_bounds_is_denied(bench: WebBench, wrong: dict[str, Any]) -> None:
    outcome = await bench.call("web_search", **wrong)
    assert (outcome.status, bench.names.asked) == (Status.DENIED, [])

"""`trivet domains`: what is thought of a URL, and all rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cli_runner import InProcessCli


def test_it_says_category_boost_and_rule(cli: InProcessCli) -> None:
    ended = cli("domains", "check", "https://www.bbc.co.uk/news", "spiegel.ltd", "https://nobody.example/")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "https://www.bbc.co.uk/news",
        "    press, boost 0.75 (rule bbc.co.uk, shipped)",
        "spiegel.ltd",
        "    blocked: pretends to be Der Spiegel (rule spiegel.ltd, shipped)",
        "https://nobody.example/",
        "    unknown, boost 0.60: no rule is about nobody.example",
    ]


def test_as_json(cli: InProcessCli) -> None:
    ended = cli("domains", "check", "--json", "https://x.spiegel.ltd/", "nobody.example")
    blocked, unknown = ended.json["domains"]
    assert blocked == {
        "url": "https://x.spiegel.ltd/",
        "host": "x.spiegel.ltd",
        "category": "blocked",
        "boost": 0.0,
        "blocked": True,
        "reason": "pretends to be Der Spiegel",
        "rule": "spiegel.ltd",
        "file": "shipped",
    }
    assert (unknown["category"], unknown["boost"], unknown["rule"], unknown["file"]) == ("unknown", 0.6, None, None)


@pytest.mark.parametrize("arguments", [(), ("",), ("ftp://bbc.co.uk/",), ("https://bbc.co.uk", "https://a b/")])
def test_nothing_or_what_is_no_url_is_a_usage_error(cli: InProcessCli, arguments: tuple[str, ...]) -> None:
    ended = cli("domains", "check", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err


def test_the_owner_s_file_is_named_where_its_rule_fits(cli: InProcessCli, shell_folder: Path) -> None:
    (shell_folder / "mine.toml").write_text('[blocked]\n"reddit.com" = "not here"\n', encoding="utf-8")
    (shell_folder / "trivet.toml").write_text('[web]\ndomains_path = "mine.toml"\n', encoding="utf-8")
    ended = cli("domains", "check", "https://old.reddit.com/")
    assert "blocked: not here (rule reddit.com, " in ended.out
    assert "mine.toml)" in ended.out
    listed = cli("domains", "list", "--category", "blocked").out.splitlines()
    assert len(listed) == 51
    assert any(line.startswith("reddit.com ") and "mine.toml" in line for line in listed)
    (shell_folder / "mine.toml").write_text('\n[blocked]\n"reddit.com" = 1\n', encoding="utf-8")
    for command in (("check", "bbc.com"), ("list",)):
        ended = cli("domains", *command)
        assert ended.code == 3
        assert "mine.toml:3: 'blocked.reddit.com'" in ended.err


def test_the_list_can_be_cut_to_a_category(cli: InProcessCli) -> None:
    whole = cli("domains", "list", "--json").json
    assert len(whole["domains"]) == 360
    assert whole["categories"]["unknown"] == 0.6
    press = cli("domains", "list", "--json", "--category", "press").json["domains"]
    assert {"domain": "lemonde.fr", "category": "press", "boost": 0.75, "reason": "", "file": "shipped"} in press
    assert {entry["category"] for entry in press} == {"press"}
    ended = cli("domains", "list", "--category", "pres")
    assert ended.code == 2
    assert "no category 'pres'; there are standards, " in ended.err


@pytest.fixture
def shell_folder(cli: InProcessCli) -> Path:
    return cli.cli.folder

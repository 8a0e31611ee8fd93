"""Which hosts and addresses may be asked, and which hosts a domain rule names."""

from __future__ import annotations

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.web import domains
from retinue.tools.web.addresses import refusal
from retinue.tools.web.urls import MAX_URL_CHARS, parse

PUBLIC = ("93.184.216.34", "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34", "64:ff9b::102:304")
INSIDE = (
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200"),
    *("169.254.169.254", "168.63.129.16", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "fec0::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a00:1", "::127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf::"),
    *("localhost", "", "1.2.3", "0x7f000001"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_anybody_can_reach_is_not_refused(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_local_private_or_stands_for_it_is_refused(address: str) -> None:
    assert refusal(address)


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("http://example.com", "https://example.com/"),
        ("http://example.com:80/a", "https://example.com/a"),
        ("http://example.com:8080/a?b=1#c", "https://example.com:8080/a?b=1"),
        ("https://Example.COM.:443/a b".replace(" ", "%20"), "https://example.com/a%20b"),
        ("https://bücher.de/ü", "https://xn--bcher-kva.de/%C3%BC"),
        ("https://[2606:2800:220:1:0:0:0:1]/", "https://[2606:2800:220:1::1]/"),
        ("HTTPS://example.com/x/../y", "https://example.com/y"),
    ],
)
def test_a_url_is_brought_into_one_form_and_to_https(written: str, whole: str) -> None:
    assert parse(written).url == whole


@pytest.mark.parametrize(
    "written",
    [
        *("", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "javascript:alert(1)"),
        *(
            "https://",
            "https:///x",
            "https://user@example.com",
            "https://user:word@example.com",
            "https://:x@example.com",
        ),
        *("http://127.1", "http://2130706433", "http://0x7f000001", "http://0177.0.0.1", "http://127.0.0.0x1"),
        *(
            "http://127.0.0.1.",
            "http://256.1.1.1",
            "http://1.2.3.4.5",
            "http://127%2e0.0.1",
            "http://\uff11\uff12\uff17.0.0.1",
        ),
        *("http://[fe80::1%25eth0]/", "http://[::1", "http://exa mple.com", "https://example.com\\@evil.com"),
        *(
            "https://example.com:0",
            "https://example.com:99999",
            "https://a..b",
            "https://.a",
            "https://example.com/\x00",
        ),
        *("https://example.com/\nHost: x", "https://example.com/\ud800", f"https://example.com/{'a' * MAX_URL_CHARS}"),
    ],
)
def test_what_is_no_plain_web_address_is_refused_with_a_reason(written: str) -> None:
    if written == "http://127.0.0.1.":  # the dot at the end of a name means nothing: it is the address without it
        assert parse(written).host == "127.0.0.1"
        return
    with pytest.raises(ToolError, match=r"\w"):
        parse(written)


def test_a_local_host_is_taken_as_it_is_written() -> None:
    local = frozenset({"localhost:3000", "box.lan"})
    assert parse("http://localhost:3000/x", local).url == "http://localhost:3000/x"
    assert parse("http://box.lan/x", local).url == "http://box.lan/x"
    assert parse("http://box.lan:81/x", local).url == "http://box.lan:81/x"
    assert parse("http://localhost:3001/x", local).url == "https://localhost:3001/x"


def test_a_relative_address_starts_from_the_page_that_names_it() -> None:
    base = parse("https://example.com/a/b?c")
    assert parse("../d", base=base).url == "https://example.com/d"
    assert parse("//other.org/x", base=base).url == "https://other.org/x"
    assert parse("http://example.com/x", base=base).url == "https://example.com/x"


FITS = [
    ("example.com", "example.com", True),
    ("example.com", "EXAMPLE.com.", True),
    ("Example.COM.", "example.com", True),
    ("example.com", "www.example.com", False),
    ("example.com", "example.com.evil.org", False),
    ("*.example.com", "example.com", False),
    ("*.example.com", "www.example.com", True),
    ("*.example.com", "a.b.example.com", True),
    ("*.example.com", "evilexample.com", False),
    ("*.example.com", ".example.com", False),
    ("*", "example.com", True),
    ("*", "", False),
    ("api.*.com", "api.one.com", True),
    ("api.*.com", "api.one.two.com", False),
    ("docs-*.example.com", "docs-1.example.com", True),
    ("docs-*.example.com", "docs-1.x.example.com", False),
    ("example.*", "example.org", True),
    ("example.*", "example.co.uk", False),
    ("bücher.de", "xn--bcher-kva.de", True),
    ("a.c", "abc", False),
]


@pytest.mark.parametrize(("pattern", "host", "fits"), FITS)
def test_a_star_is_part_of_a_label_but_at_the_start_where_it_is_any_depth(pattern: str, host: str, fits: bool) -> None:
    assert domains.fits(pattern, host) is fits
    assert domains.rule_fits(f"domain:{pattern}", domains.subject_name(host)) is fits


@pytest.mark.parametrize("content", ["example.com", "Domain:example.com", "url:https://example.com", ""])
def test_a_rule_that_is_about_no_domain_fits_none(content: str) -> None:
    assert not domains.rule_fits(content, "domain:example.com")


def test_a_domain_of_a_list_covers_what_is_below_it() -> None:
    assert domains.covers("example.com", "example.com")
    assert domains.covers("example.com", "docs.example.com")
    assert not domains.covers("example.com", "badexample.com")

from __future__ import annotations

import pytest

from retinue.tools.shell.sandbox.hosts import Place, Refused, absolute, authority, place, public

HOSTS = ("pkg.test", "*.example.org", "Mixed.Example")


@pytest.mark.parametrize(
    "host", ["pkg.test", "PKG.test", "pkg.test.", "a.example.org", "a.b.example.org", "mixed.example"]
)
def test_a_host_on_the_list_is_let_through(host: str) -> None:
    assert place(host, "443", HOSTS) == Place(host.lower().removesuffix("."), 443)
    assert place(host, "80", HOSTS).port == 80


@pytest.mark.parametrize(
    "host",
    [
        *("evil.org", "xpkg.test", "pkg.test.evil.org", "example.org", "notexample.org", "a.example.org.evil", ""),
        *("127.0.0.1", "2130706433", "0x7f000001", "[::1]", "::1", "pkg.test\x00.evil", "pkg.test evil", "pkg.test/"),
        *(
            "pkg.test@evil.org",
            ".example.org",
            "a..example.org",
            "-a.example.org",
            "pyp\u0131.org",
            "*.example.org",
            "." * 300,
        ),
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    with pytest.raises(Refused):
        place(host, "443", HOSTS)


@pytest.mark.parametrize("pattern", ["*", "*.", "", "*org", "**.org"])
def test_a_pattern_that_is_none_fits_nothing(pattern: str) -> None:
    with pytest.raises(Refused):
        place("pkg.test", "443", (pattern,))


@pytest.mark.parametrize("port", ["22", "8080", "", "443x", "+443", " 443", "0443", "-1", "\u0664\u0664\u0663"])
def test_other_ports_are_refused(port: str) -> None:
    with pytest.raises(Refused):
        place("pkg.test", port, HOSTS)


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("http://a.b/", ("a.b", "80", "/")),
        ("HTTP://a.b", ("a.b", "80", "/")),
        ("http://a.b:443/x?y#z", ("a.b", "443", "/x?y#z")),
        ("http://a.b?x", ("a.b", "80", "/?x")),
    ],
)
def test_an_absolute_target_is_taken_apart(target: str, parts: tuple[str, str, str]) -> None:
    assert absolute(target) == parts


@pytest.mark.parametrize("target", ["/", "a.b/", "https://a.b/", "ftp://a.b/", "http:///x", "http://u@a.b/", "*"])
def test_a_target_without_an_address_is_refused(target: str) -> None:
    with pytest.raises(Refused):
        absolute(target)


@pytest.mark.parametrize("target", ["a.b", ":443", "", "u:p@a.b:443"])
def test_an_authority_without_host_or_port_is_refused(target: str) -> None:
    with pytest.raises(Refused):
        authority(target)


@pytest.mark.parametrize("address", ["8.8.8.8", "151.101.0.223", "2a04:4e42::223", "::ffff:8.8.8.8"])
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert public(address)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
        ),
        *(
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fe80::1%eth0",
        ),
        *("fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::1", "2001::1", "nonsense", ""),
    ],
)
def test_an_address_of_this_machine_or_of_a_special_network_is_not(address: str) -> None:
    assert not public(address)

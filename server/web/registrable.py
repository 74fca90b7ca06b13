"""Which hosts belong to one owner: the part of a name that was registered. Pure.

By the shape of names, without the public suffix list, which is larger than all else here; what it takes for one
owner too many (an unusual national suffix) makes a topic look thinner than it is, never richer.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from config.domains import is_address

SECOND_LEVELS = frozenset("ac co com edu gob gouv gov govt go gv id info mil ne net nom or org sch".split())
"""What national domains are divided into."""
SHARED = frozenset(
    """github.io gitlab.io blogspot.com wordpress.com tumblr.com substack.com medium.com netlify.app vercel.app
    pages.dev web.app firebaseapp.com herokuapp.com readthedocs.io neocities.org livejournal.com fandom.com wixsite.com
    weebly.com bearblog.dev hatenablog.com""".split()
)
"""Below these everybody has a name of their own."""


def registrable(url: str) -> str:
    """The registered domain of a URL: bbc.co.uk of https://news.bbc.co.uk/; an address as it is; "" of no URL.

    >>> registrable("https://a.b.example.org/x"), registrable("http://me.github.io/")
    ('example.org', 'me.github.io')
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    if not host or is_address(host):
        return host
    labels = host.split(".")
    count = 2
    if ".".join(labels[-2:]) in SHARED or (len(labels[-1]) == 2 and len(labels) > 2 and labels[-2] in SECOND_LEVELS):
        count = 3
    return ".".join(labels[-count:])

"""The few sentences the server itself says in an answer, by language; English where a language is missing."""

from __future__ import annotations

from collections.abc import Sequence

REFUSED = {
    "en": "I can't help with that. Ask me something that the pages I search may answer.",
    "fr": "Je ne peux pas répondre à cela. Posez-moi une question à laquelle les pages consultées peuvent répondre.",
    "de": "Dabei kann ich nicht helfen. Stellen Sie eine Frage, die die durchsuchten Seiten beantworten können.",
    "es": "No puedo ayudar con eso. Pregunte algo que puedan responder las páginas consultadas.",
    "zh": "这个我帮不了。请提一个所查页面可能回答的问题。",
}
SEARCHED = {
    "en": "Searched: {places}.",
    "fr": "Recherché dans : {places}.",
    "de": "Durchsucht: {places}.",
    "es": "Se buscó en: {places}.",
    "zh": "已查找：{places}。",
}
NEAREST = {
    "en": "Nearest pages: {pages}.",
    "fr": "Pages les plus proches : {pages}.",
    "de": "Nächstliegende Seiten: {pages}.",
    "es": "Páginas más cercanas: {pages}.",
    "zh": "最接近的页面：{pages}。",
}
PLACES = {
    "en": {"wiki": "wiki", "web": "web"},
    "fr": {"wiki": "wiki", "web": "web"},
    "de": {"wiki": "Wiki", "web": "Web"},
    "es": {"wiki": "wiki", "web": "web"},
    "zh": {"wiki": "维基", "web": "网络"},
}


def refused(language: str) -> str:
    return REFUSED.get(language, REFUSED["en"])


def searched(language: str, places: Sequence[str]) -> str:
    """`places`: any of "wiki" and "web"."""
    names = PLACES.get(language, PLACES["en"])
    return SEARCHED.get(language, SEARCHED["en"]).format(places=", ".join(names[place] for place in places))


def nearest(language: str, pages: Sequence[str]) -> str:
    return NEAREST.get(language, NEAREST["en"]).format(pages="; ".join(pages))

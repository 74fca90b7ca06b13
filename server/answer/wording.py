"""The few sentences the server itself says in an answer, by language; English where a language is missing."""

from __future__ import annotations

from collections.abc import Sequence

REFUSED = {
    "en": "I can't help with that. Ask me something that the pages I search may answer.",
    "fr": "Je ne peux pas répondre à cela. Posez-moi une question à laquelle les pages consultées peuvent répondre.",
    "de": "Dabei kann ich nicht helfen. Stellen Sie eine Frage, die die durchsuchten Seiten beantworten können.",
    "es": "No puedo ayudar con eso. Pregunte algo que puedan responder las páginas consultadas.",
    "it": "Non posso aiutare con questo. Chieda qualcosa a cui le pagine consultate possano rispondere.",
    "pt": "Não posso ajudar com isso. Pergunte algo que as páginas consultadas possam responder.",
    "ru": "С этим я не могу помочь. Спросите о том, на что могут ответить просматриваемые страницы.",
    "zh": "这个我帮不了。请提一个所查页面可能回答的问题。",
}
SEARCHED = {
    "en": "Searched: {places}.",
    "fr": "Recherché dans : {places}.",
    "de": "Durchsucht: {places}.",
    "es": "Se buscó en: {places}.",
    "it": "Cercato in: {places}.",
    "pt": "Procurado em: {places}.",
    "ru": "Искал: {places}.",
    "zh": "已查找：{places}。",
}
NEAREST = {
    "en": "Nearest pages: {pages}.",
    "fr": "Pages les plus proches : {pages}.",
    "de": "Nächstliegende Seiten: {pages}.",
    "es": "Páginas más cercanas: {pages}.",
    "it": "Pagine più vicine: {pages}.",
    "pt": "Páginas mais próximas: {pages}.",
    "ru": "Ближайшие страницы: {pages}.",
    "zh": "最接近的页面：{pages}。",
}
PLACES = {
    "en": {"wiki": "wiki", "web": "web", "knowledge": "kept knowledge"},
    "fr": {"wiki": "wiki", "web": "web", "knowledge": "connaissances conservées"},
    "de": {"wiki": "Wiki", "web": "Web", "knowledge": "aufbewahrtes Wissen"},
    "ru": {"wiki": "вики", "web": "интернет", "knowledge": "сохранённые знания"},
    "zh": {"wiki": "维基", "web": "网络", "knowledge": "已保存的知识"},
}


def refused(language: str) -> str:
    return REFUSED.get(language, REFUSED["en"])


def searched(language: str, places: Sequence[str]) -> str:
    """`places`: any of "wiki", "web" and "knowledge"."""
    names = PLACES.get(language, PLACES["en"])
    return SEARCHED.get(language, SEARCHED["en"]).format(places=", ".join(names[place] for place in places))


def nearest(language: str, pages: Sequence[str]) -> str:
    return NEAREST.get(language, NEAREST["en"]).format(pages="; ".join(pages))

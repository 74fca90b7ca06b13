"""A MediaWiki's namespaces, in its own language and in English, and what a title written in its pages means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from ingestion.sanitize import clean_title

CANONICAL = {
    -2: "Media",
    -1: "Special",
    0: "",
    1: "Talk",
    2: "User",
    3: "User talk",
    4: "Project",
    5: "Project talk",
    6: "File",
    7: "File talk",
    8: "MediaWiki",
    9: "MediaWiki talk",
    10: "Template",
    11: "Template talk",
    12: "Help",
    13: "Help talk",
    14: "Category",
    15: "Category talk",
    828: "Module",
    829: "Module talk",
}
"""MediaWiki understands these names in every wiki, beside the wiki's own."""
ALIASES = {"image": 6, "image talk": 7, "wp": 4}
SPECIAL, MEDIA, ARTICLE, FILE, TEMPLATE, CATEGORY = -1, -2, 0, 6, 10, 14
PROJECT_PREFIXES = """
b c commons d doi foundation google hdl incubator irc m mail meta metawiki mw n outreach phab phabricator q rfc s
sourceforge species testwiki tools v voy w wikia wikibooks wikidata wikimedia wikinews wikipedia wikiquote wikisource
wikispecies wikiversity wikivoyage wikt wiktionary wmf
"""
"""Other wikis that (nearly) every MediaWiki knows; a dump does not list them."""
LANGUAGE_PREFIXES = """
aa ab ace ady af ak als am an ang ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg bcl be be-tarask
be-x-old bg bh bi bjn bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da
de din diq dk dsb dty dv dz ee el eml en eo epo es et eu ext fa ff fi fiu-vro fj fo fr frp frr fur fy ga gag gan gcr
gd gl glk gn gom gor got gu gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia id ie ig ii ik ilo inh io is it iu ja
jam jbo jp jv ka kaa kab kbd kbp kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lfn lg li lij
lld lmo ln lo lrc lt ltg lv mai map-bms mdf mg mh mhr mi min minnan mk ml mn mo mr mrj ms mt mus mwl my myv mzn na nah
nan nap nb nds nds-nl ne new ng nl nn no nov nqo nrm nso nv ny oc olo om or os pa pag pam pap pcd pdc pfl pi pih pl
pms pnb pnt ps pt qu rm rmy rn ro roa-rup roa-tara ru rue rw sa sah sat sc scn sco sd se sg sgs sh shn si simple sk sl
sm sn so sq sr srn ss st stq su sv sw szl szy ta tcy te tet tg th ti tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk
ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw
zh-yue zu
"""
"""Codes of the Wikipedias: `[[fr:…]]` is the same page in another language, not a page of this wiki."""
LANGUAGES = frozenset(LANGUAGE_PREFIXES.split())
INTERWIKI = LANGUAGES | frozenset(PROJECT_PREFIXES.split())
OTHER_NAMES = {
    6: """
    ar:صورة,ملف be:Выява,Файл bg:Картинка,Файл ca:Imatge,Fitxer cs:Soubor da:Billede,Fil de:Bild,Datei
    el:Εικόνα,Αρχείο eo:Dosiero es:Imagen,Archivo et:Pilt,Fail eu:Irudi,Fitxategi fa:تصویر,پرونده
    fi:Kuva,Tiedosto fr:Image,Fichier gl:Imaxe,Ficheiro he:תמונה,קובץ hr:Slika,Datoteka hu:Kép,Fájl
    id:Berkas,Gambar it:Immagine,File ja:画像,ファイル ko:그림,파일 la:Imago,Fasciculus lt:Vaizdas lv:Attēls
    nl:Afbeelding,Bestand no:Bilde,Fil pl:Grafika,Plik pt:Imagem,Ficheiro,Arquivo ro:Imagine,Fișier
    ru:Изображение,Файл sk:Súbor sl:Slika sr:Слика,Датотека sv:Bild,Fil th:ภาพ,ไฟล์ tr:Resim,Dosya
    uk:Зображення,Файл vi:Hình,Tập_tin zh:图像,圖像,文件,檔案
    """,
    14: """
    ar:تصنيف be:Катэгорыя bg:Категория ca:Categoria cs:Kategorie da:Kategori de:Kategorie el:Κατηγορία
    eo:Kategorio es:Categoría et:Kategooria eu:Kategoria fa:رده fi:Luokka fr:Catégorie gl:Categoría
    he:קטגוריה hr:Kategorija hu:Kategória id:Kategori it:Categoria ja:カテゴリ ko:분류 la:Categoria
    lt:Kategorija lv:Kategorija nl:Categorie no:Kategori pl:Kategoria pt:Categoria ro:Categorie
    ru:Категория sk:Kategória sl:Kategorija sr:Категорија sv:Kategori th:หมวดหมู่ tr:Kategori
    uk:Категорія vi:Thể_loại zh:分类,分類
    """,
    10: """
    ar:قالب bg:Шаблон ca:Plantilla cs:Šablona da:Skabelon de:Vorlage el:Πρότυπο es:Plantilla fa:الگو
    fi:Malline fr:Modèle he:תבנית hu:Sablon it:Template ja:テンプレート ko:틀 lv:Veidne nl:Sjabloon no:Mal
    pl:Szablon pt:Predefinição ru:Шаблон sr:Шаблон sv:Mall tr:Şablon uk:Шаблон vi:Bản_mẫu zh:模板,樣板
    """,
    2: """
    cs:Uživatelka de:Benutzer,Benutzerin es:Usuaria fr:Utilisateur,Utilisatrice
    pl:Wikipedysta,Wikipedystka pt:Usuária,Utilizadora ru:Участник,Участница uk:Користувачка
    bg:Потребител
    """,
}
"""Names that a wiki in a language knows beside those in its dump: older ones, feminine ones, and all where the dump
lists none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiTitle:
    """A title as written in a link, understood."""

    namespace: int = ARTICLE
    name: str = ""
    """Without its namespace."""
    full: str = ""
    """As the page itself is called: "Kategoreja:Latgola"."""
    colon: bool = False
    """Whether a leading colon asks for a plain link, to a category or a file."""
    interwiki: str = ""
    """The prefix of another wiki, or of this one in another language."""


class WikiSite:
    """One MediaWiki, from its dump's `<siteinfo>`."""

    def __init__(
        self,
        namespaces: Mapping[int, str] | None = None,
        *,
        base: str = "",
        language: str = "",
        first_letter: bool = True,
    ) -> None:
        self.names = {**CANONICAL, **(namespaces or {})}
        self.base = base
        self.language = language
        self.first_letter = first_letter
        self._numbers = {**ALIASES, **_other_names(language)}
        # The wiki's own names last: they win where they contradict.
        for known in (CANONICAL, namespaces or {}):
            self._numbers.update({name.casefold(): number for number, name in known.items() if name})

    def parse(self, written: str, *, namespace: int = ARTICLE) -> WikiTitle:
        """What `[[written]]` means; `namespace` is the one assumed where none is written. No name: no page."""
        text = clean_title(written.partition("#")[0].replace("_", " "))
        colon = text.startswith(":")
        text = text.lstrip(": ")
        prefix, has_prefix, rest = text.partition(":")
        key = prefix.strip().casefold()
        if has_prefix and key in self._numbers:
            namespace, text = self._numbers[key], rest.strip()
        elif has_prefix and rest.strip() and key in INTERWIKI:
            return WikiTitle(name=rest.strip(), full=text, interwiki=key, colon=colon)
        name = text[:1].upper() + text[1:] if self.first_letter else text
        own = self.names.get(namespace, "")
        return WikiTitle(namespace=namespace, name=name, full=f"{own}:{name}" if own and name else name, colon=colon)

    def url(self, title: str) -> str:
        """The page's address, or its title where the dump does not say where the wiki is."""
        path = quote(title.replace(" ", "_"), safe="/:@!$*(),;~'")
        return self.base[: self.base.rfind("/") + 1] + path if "/" in self.base else title


def _other_names(language: str) -> dict[str, int]:
    return {
        name.replace("_", " ").casefold(): number
        for number, names in OTHER_NAMES.items()
        for code, _, known in (part.partition(":") for part in names.split())
        if code == language
        for name in known.split(",")
    }

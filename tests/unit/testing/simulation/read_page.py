"""Reads a page as a browser does: its elements with their classes, ids and texts."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "br", "img", "link"})


@dataclass(eq=False)
class PageTag:
    """An element. Its content is a list of texts and elements."""

    name: str
    attributes: dict[str, str]
    content: list["PageTag | str"] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


class ReadPage(HTMLParser):
    """All elements of a page. Parsing fails if a tag is closed in the wrong order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = PageTag("root", {})
        self.tags: list[PageTag] = []
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = PageTag(tag, {name: value or "" for name, value in attrs})
        self._open[-1].content.append(found)
        self.tags.append(found)
        if tag not in _VOID:
            self._open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].content.append(data)

    def all(self, class_name: str) -> list[PageTag]:
        return [tag for tag in self.tags if class_name in tag.classes]

    def first(self, class_name: str) -> PageTag:
        return self.all(class_name)[0]

    def all_tags(self, name: str) -> list[PageTag]:
        return [tag for tag in self.tags if tag.name == name]

    def ids(self, name: str) -> list[PageTag]:
        return [tag for tag in self.tags if tag.attributes.get("id") == name]

    def is_closed(self) -> bool:
        return len(self._open) == 1


def read_page(text: str) -> ReadPage:
    page = ReadPage()
    page.feed(text)
    page.close()
    assert page.is_closed()
    return page


def text_of(tag: PageTag) -> str:
    """Returns the text that a reader sees, with single spaces."""
    return " ".join(_text(tag).split())


def shown_rows(page: ReadPage) -> list[PageTag]:
    """Returns the rows of the lanes, without the folds."""
    (lanes,) = page.all("lanes")
    (rows,) = [tag for tag in lanes.content if isinstance(tag, PageTag) and tag.name == "ol"]
    return [row for row in rows.content if isinstance(row, PageTag) and "fold" not in row.classes]


def _text(tag: PageTag) -> str:
    inline = tag.name in ("a", "b", "span", "small")
    inner = "".join(
        part if isinstance(part, str) else _text(part)
        for part in tag.content
        if not isinstance(part, PageTag) or part.name != "style"
    )
    return inner if inline and not {"at", "who"} & set(tag.classes) else f" {inner} "

"""HTML of pages.

A page is self-contained: no font, picture or style from elsewhere. A page for a file has no script
either; its content security policy enforces that. A page from a server has a nonce, and follows the
theme of the page around it.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from sluice.pages.elements import Content, Element, Page


def html(page: Page, nonce: str = "") -> str:
    """Return a page as HTML; `nonce` is that of the policy that the page is sent with."""
    return _environment().get_template("page.html.j2").render(page=page, nonce=nonce)


@cache
def _environment() -> Environment:
    """Return what renders the templates, which it compiles once."""
    made = Environment(
        loader=PackageLoader("sluice.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["show"] = _show
    return made


def _show(content: Content) -> str:
    """Return an element as its macro writes it; words are escaped where they are written."""
    match content:
        case None:
            return "–"
        case int():
            return f"{content:,}"
        case str():
            return content
    macro = type(content).__name__.lower() if isinstance(content, Element) else "many"
    written: str = getattr(_environment().get_template("elements.html.j2").module, macro)(content)
    return written

"""Pages of the site from outside docs/, links to other places, and its content policy.

A hook of mkdocs. README.md and CHANGELOG.md become pages. Links to source files, which the site
does not have, become their text. Pages forbid browsers to load anything from elsewhere.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {"README.md": "overview.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(^```.*?^```$)|(!?)\[([^\]]*)\]\(([^)\s]+)\)", re.MULTILINE | re.DOTALL)

ONLY_OWN = (
    "<head><meta http-equiv='Content-Security-Policy' content=\"default-src 'self'; img-src 'self' "
    "data:; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'\">"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the project's folder."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: MkDocsConfig) -> str:
    """Point every link outside code to its place in the site."""
    here = _place(page.file.src_uri)

    def placed(found: re.Match[str]) -> str:
        code, mark, text, link = found.groups()
        if code:
            return str(code)
        path, _, anchor = link.partition("#")
        if "://" in link or not path:
            return found[0]
        target = _page(posixpath.normpath(posixpath.join(posixpath.dirname(here), path)))
        if not target or files.get_file_from_path(target) is None:
            return text
        link = posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")
        return f"{mark}[{text}]({link}{'#' if anchor else ''}{anchor})"

    return LINK.sub(placed, markdown)


def on_post_page(output: str, **_: object) -> str:
    """Add the policy by which browsers load only the site's own files."""
    return output.replace("<head>", ONLY_OWN, 1)


def on_post_template(output_content: str, **_: object) -> str:
    """Add it to the page for missing pages, too."""
    return on_post_page(output_content)


def _place(page: str) -> str:
    """Return the file of a page, relative to the project's folder."""
    return next((source for source, own in OUTSIDE.items() if own == page), f"docs/{page}")


def _page(file: str) -> str:
    """Return the page of a file of the project; nothing if it has none."""
    if file in OUTSIDE:
        return OUTSIDE[file]
    return file.removeprefix("docs/") if file.startswith("docs/") else ""

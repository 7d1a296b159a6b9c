#!/usr/bin/env python3
"""Builds the documentation as a searchable site, with MkDocs (Debian's package mkdocs).

    scripts/docs_site.py [SITE]      into SITE, build/site by default

The pages are README.md, those of docs/ and every file that they link to, in the folders where they are, so that relative
links hold; a link to a folder becomes its text. The order is that of the table in docs/README.md. Exits with 1 if MkDocs
warns, or if a link leads nowhere in the site; with 77 where there is no mkdocs.
"""
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

from check_links import LINK

ROOT = pathlib.Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "docs/mkdocs.yml"


def copy_pages(folder):
    """The pages, and what they link to, below `folder`."""
    todo = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    seen = set(todo)
    while todo:
        file = todo.pop()
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, place)
            continue
        text = file.read_text(encoding="utf-8")

        def kept(match, page=file):
            path = match[1].partition("#")[0]
            target = (page.parent / path).resolve()
            if re.match(r"[a-z]+:", path) or not path or not target.is_relative_to(ROOT):
                return match[0]
            if not target.is_file():
                return match[0][1:match[0].index("](")]
            if target not in seen:
                seen.add(target)
                todo.append(target)
            return match[0]

        place.write_text(LINK.sub(kept, text), encoding="utf-8")


def navigation():
    """The rows of docs/README.md: a section for each first cell that is not empty."""
    sections = [{"lockstep": "README.md"}]
    for row in re.findall(r"^\|(.*)\|$", (ROOT / "docs/README.md").read_text(encoding="utf-8"), re.MULTILINE):
        section, pages, *_ = (cell.strip() for cell in row.split("|"))
        if section and "[" in pages:
            sections.append({section.capitalize() if section.islower() else section: []})
        for name, target in re.findall(r"\[([^\]]*)\]\(([^()\s]+\.md)\)", pages):
            path = (ROOT / "docs" / target).resolve().relative_to(ROOT)
            title = re.search(r"^# (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
            list(sections[-1].values())[0].append({title[1] if title else name: str(path)})
    design = sorted((ROOT / "docs/design").glob("*.md"))
    list(sections[-1].values())[0].extend(str(page.relative_to(ROOT)) for page in design)
    return sections


class Anchors(html.parser.HTMLParser):
    """The ids of a page, and its links."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        if tag in ("a", "img", "link", "script"):
            self.links.append(values.get("href") or values.get("src") or "")


def broken_links(site):
    pages = {page: Anchors(page) for page in site.rglob("*.html") if page.name != "404.html"}  # whose links are absolute
    for page, found in pages.items():
        for link in found.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or link in ("", "#"):
                continue
            target = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page
            if not target.exists() or url.fragment and target in pages and url.fragment not in pages[target].ids:
                yield f"{page.relative_to(site)}: a link leads nowhere: '{link}'"


def main():
    site = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    if shutil.which("mkdocs") is None:
        print("skipped: mkdocs is not installed (scripts/install-dependencies.sh --docs)")
        sys.exit(77)
    work = site.with_name(f"{site.name}-pages")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        copy_pages(work / "pages")
        settings = {"INHERIT": str(SETTINGS), "docs_dir": str(work / "pages"), "site_dir": str(site), "nav": navigation()}
        (work / "mkdocs.yml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        done = subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--clean", "-f", work / "mkdocs.yml"], check=False)
    finally:
        shutil.rmtree(work)
    broken = list(broken_links(site)) if done.returncode == 0 else []
    print("\n".join(broken) or f"{site}/index.html; the search wants a server: python3 -m http.server -d {site}")
    sys.exit(1 if done.returncode or broken else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Follows every relative link of every Markdown page: the file must exist, and the heading if one is named.

    scripts/check_links.py [ROOT]

Prints one line per broken link, `file:line: what`, and exits with 1 if there are any. Links to other hosts are not
followed.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]\n]*\]\(([^()\s]+)\)")
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
LEFT_OUT = {"build", "runs", "node_modules"}


def lines_of(text):
    """Number and text of each line outside code blocks."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = None if fence else mark[1]
        elif fence is None:
            yield number, line


def anchors_of(page):
    """The anchors of a page's headings: lower case, punctuation removed, spaces as hyphens, -1 for the second."""
    found, seen = set(), {}
    for _, line in lines_of(page.read_text(encoding="utf-8")):
        heading = re.match(r"#{1,6} +(.+?) *#*$", line)
        if heading:
            name = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            count = seen[name] = seen.get(name, -1) + 1
            found.add(name if count == 0 else f"{name}-{count}")
    return found


def problem_of(page, target):
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    if not file.exists():
        return f"expected a file, found nothing at '{path}'"
    if anchor and file.suffix == ".md" and anchor not in anchors_of(file):
        return f"expected a heading '#{anchor}' in '{file.name}'"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    pages = [page for page in sorted(root.rglob("*.md"))
             if not any(part in LEFT_OUT or part.startswith(".") for part in page.relative_to(root).parts)]
    broken = 0
    for page in pages:
        for number, line in lines_of(page.read_text(encoding="utf-8")):
            for target in LINK.findall(CODE.sub(lambda code: "x" * len(code[0]), line)):
                problem = None if re.match(r"[a-z]+:", target) else problem_of(page, target)
                if problem:
                    broken += 1
                    print(f"{page.relative_to(root)}:{number}: {problem}")
    if not pages:
        sys.exit(f"{root}: no Markdown pages")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()

"""Tables in a page that are made by the program: between `<!-- NAME: begin ... -->` and `<!-- NAME: end -->`."""
import difflib
import re
import sys


def keep_current(page, tables, command):
    """Rewrites the tables of `page`, (name, text) each, in place. With --check on the command line it changes nothing,
    and ends with 1 and the difference if they are not current; `command` makes them so."""
    old = new = page.read_text(encoding="utf-8")
    for name, table in tables:
        pattern = re.compile(rf"(<!-- {name}: begin[^\n]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
        if not pattern.search(new):
            sys.exit(f"{page}: expected the marks '<!-- {name}: begin -->' and '<!-- {name}: end -->'")
        new = pattern.sub(lambda match, table=table: match[1] + table + "\n" + match[2], new)
    if "--check" not in sys.argv[1:]:
        page.write_text(new, encoding="utf-8")
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "page", "program", n=0))
        sys.exit(f"{page.parent.name}/{page.name} is not current: run {command}")

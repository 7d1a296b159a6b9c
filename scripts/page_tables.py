"""Generated tables in a page: between `<!-- NAME: begin ... -->` and `<!-- NAME: end -->`."""
import re
import sys

from current import keep_files


def keep_current(page, tables, command):
    """Rewrites the tables of `page`, (name, text) each, in place, or checks them, like keep_files()."""
    new = page.read_text(encoding="utf-8")
    for name, table in tables:
        pattern = re.compile(rf"(<!-- {name}: begin[^\n]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
        if not pattern.search(new):
            sys.exit(f"{page}: expected the marks '<!-- {name}: begin -->' and '<!-- {name}: end -->'")
        new = pattern.sub(lambda match, table=table: match[1] + table + "\n" + match[2], new)
    keep_files({page: new}, command)

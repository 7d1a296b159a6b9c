"""Generated files that are kept in the tree."""
import difflib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def keep_files(files, command):
    """Writes `files`, text by path. With --check on the command line it changes nothing; if some are not current it
    shows the differences and exits with 1. `command` regenerates them."""
    stale = []
    for path, text in files.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
            continue
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            continue
        name = str(path.resolve().relative_to(ROOT))
        stale.append(name)
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), name, "made", n=0))
    if stale:
        sys.exit(f"not current: {', '.join(stale)}; run {command}")

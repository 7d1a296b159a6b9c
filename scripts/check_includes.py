#!/usr/bin/env python3
"""Checks every #include of src/ and include/, and CMake's rooms, against the tables in src/README.md.

    scripts/check_includes.py [ROOT]

Prints one line per violation, `file:line: what`, and exits with 1 if there are any.
"""
import fnmatch
import pathlib
import re
import sys
from dataclasses import dataclass, field

SUFFIXES = {".cpp", ".hpp", ".h", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# C and POSIX headers: the ones with a dot or a slash that any room may use. Standard C++ headers have neither.
SYSTEM = ["sys/*", "linux/*", "netinet/*", "arpa/*"] + [
    name + ".h" for name in "dirent dlfcn elf errno fcntl fnmatch glob grp ifaddrs link malloc netdb poll pthread pwd "
    "sched semaphore signal stdint stdio stdlib string strings termios time unistd wordexp".split()]


@dataclass
class Tables:
    """What src/README.md says."""
    level: dict = field(default_factory=dict)    # room -> level
    folders: dict = field(default_factory=dict)  # room -> its folders, lowest first; ".": its own files
    uses: dict = field(default_factory=dict)  # room -> rooms that it may use, including itself
    owner: dict = field(default_factory=dict)    # public header's stem -> room
    foreign: list = field(default_factory=list)  # (header pattern, file patterns)
    inner: list = field(default_factory=list)  # the same, for headers of src/


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def read_tables(page):
    tables = Tables()
    kind = None
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            kind = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if kind is None:
            kind = cells[0]
        elif set(line) <= set("|-: "):
            continue
        elif kind == "level":
            room = names(cells[1])[0]
            tables.level[room] = int(cells[0])
            tables.folders[room] = names(cells[2])
            tables.uses[room] = {word.strip() for word in cells[4].split(",")} - {"-"}
        elif kind == "public header":
            tables.owner.update({header: cells[1] for header in names(cells[0])})
        elif kind == "foreign header":
            tables.foreign += [(pattern, names(cells[1])) for pattern in names(cells[0])]
        elif kind == "header of one side":
            tables.inner += [(pattern, names(cells[1])) for pattern in names(cells[0])]
    for room, used in tables.uses.items():
        if used == {"all"}:
            used.update(tables.level)
        used.discard("all")
        used.add(room)
    return tables


def includes_of(path):
    """(line number, '<' or '"', header) of each #include."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


class Checker:
    def __init__(self, root):
        self.root = root
        self.page = root / "src" / "README.md"
        self.tables = read_tables(self.page)
        self.errors = []

    def error(self, path, line, text):
        self.errors.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def check_tables(self):
        tables = self.tables
        if not (tables.level and tables.owner and tables.foreign):
            self.error(self.page, 1, "one of the three tables (level, public header, foreign header) is missing")
        for room, used in sorted(tables.uses.items()):
            for other in sorted(used - {room}):
                if other not in tables.level:
                    self.error(self.page, 1, f"room '{room}' may use '{other}', which has no row")
                elif tables.level[other] >= tables.level[room]:
                    self.error(self.page, 1, f"room '{room}' (level {tables.level[room]}) may not use '{other}' "
                                             f"(level {tables.level[other]}): only lower levels")
        for header, room in sorted(tables.owner.items()):
            if room not in tables.level:
                self.error(self.page, 1, f"public header '{header}' belongs to '{room}', which has no row")

    def check_room_use(self, path, line, room, other, header):
        if other not in self.tables.uses[room]:
            allowed = ", ".join(sorted(self.tables.uses[room] - {room})) or "no other room"
            self.error(path, line, f"room '{room}' includes \"{header}\" of room '{other}'; it may use: {allowed}")

    def check_inner(self, path, line, header, place):
        for pattern, allowed in self.tables.inner:
            if fnmatch.fnmatch(header, pattern) and not any(fnmatch.fnmatch(place, name) for name in allowed):
                self.error(path, line, f"\"{header}\" may be included only in: {', '.join(allowed)}")

    def check_foreign(self, path, line, header, place):
        """`place` is the file's path below src/, or None for a public header."""
        if ("." not in header and "/" not in header) or any(fnmatch.fnmatch(header, name) for name in SYSTEM):
            return
        rows = [allowed for pattern, allowed in self.tables.foreign if fnmatch.fnmatch(header, pattern)]
        if place is None:
            self.error(path, line, f"public header includes <{header}>: only the standard library is allowed there")
        elif not rows:
            self.error(path, line, f"<{header}> stands in no row of the table of foreign headers in src/README.md")
        elif not any(fnmatch.fnmatch(place, pattern) for allowed in rows for pattern in allowed):
            self.error(path, line, f"<{header}> may be included only in: {', '.join(sum(rows, []))}")

    def check_public(self, path):
        owner = self.tables.owner.get(path.stem)
        if owner is None:
            self.error(path, 1, "has no row in the table of public headers in src/README.md")
            return
        for line, kind, header in includes_of(path):
            if kind == "<":
                self.check_foreign(path, line, header, None)
            elif not header.startswith("lockstep/"):
                self.error(path, line, f"public header includes \"{header}\": only other public headers are allowed")
            else:
                self.check_public_use(path, line, owner, header)

    def check_public_use(self, path, line, room, header):
        owner = self.tables.owner.get(pathlib.PurePath(header).stem)
        if owner is None or not (self.root / "include" / header).is_file():
            self.error(path, line, f"\"{header}\" is no public header")
        else:
            self.check_room_use(path, line, room, owner, header)

    def folder_of(self, place):
        """(its number among the room's folders, its name)."""
        folders = self.tables.folders[place.parts[0]]
        folder = place.parts[1] if len(place.parts) > 1 and place.parts[1] in folders else "."
        return (folders.index(folder) if folder in folders else 0), folder

    def check_use(self, path, line, place, other, header):
        """`place` and `other`: paths below src/."""
        room = place.parts[0]
        if room != other.parts[0]:
            self.check_room_use(path, line, room, other.parts[0], header)
            return
        (own, name), (used, folder) = self.folder_of(place), self.folder_of(other)
        if used > own:
            self.error(path, line, f"'{name}' of room '{room}' includes \"{header}\" of its folder '{folder}', "
                                   "which comes after it")

    def check_source(self, path):
        place = path.relative_to(self.root / "src")
        room = place.parts[0]
        if room not in self.tables.level:
            self.error(path, 1, f"room '{room}' has no row in src/README.md")
            return
        for line, kind, header in includes_of(path):
            if kind == "<":
                self.check_foreign(path, line, header, place.as_posix())
            elif header.startswith("lockstep/"):
                self.check_public_use(path, line, room, header)
            elif (self.root / "src" / header).is_file():
                self.check_use(path, line, place, pathlib.PurePath(header), header)
                self.check_inner(path, line, header, place.as_posix())
            else:
                self.error(path, line, f"\"{header}\" is not found: write the path from src/ or include/")

    def check_cmake(self):
        path = self.root / "src" / "CMakeLists.txt"
        text = path.read_text()
        for match in re.finditer(r"^lockstep_room\(([\w/]+)([^)]*)\)", text, re.MULTILINE):
            place, line = pathlib.PurePath(match.group(1)), text.count("\n", 0, match.start()) + 1
            room = place.parts[0]
            used = re.search(r"\bUSES((?:\s+(?!LINKS\b|EXCLUDE\b)[\w/]+)*)", match.group(2))
            if room not in self.tables.level:
                self.error(path, line, f"room '{room}' has no row in src/README.md")
                continue
            for other in used.group(1).split() if used else []:
                used_room = pathlib.PurePath(other).parts[0]
                if used_room not in self.tables.uses[room]:
                    self.error(path, line, f"room '{room}' links '{other}', which is not in its row of src/README.md")
                elif used_room == room and self.folder_of(place / "x")[0] <= self.folder_of(pathlib.PurePath(other, "x"))[0]:
                    self.error(path, line, f"'{place}' links '{other}', which comes after it in src/README.md")

    def run(self):
        self.check_tables()
        if not self.errors:
            for path in sources(self.root / "include"):
                self.check_public(path)
            for path in sources(self.root / "src"):
                self.check_source(path)
            self.check_cmake()
        return self.errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    errors = Checker(root.resolve()).run()
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
